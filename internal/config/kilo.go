package config

import (
	"regexp"
	"time"

	"drydock.dev/drydock/remediations"
)

// maxWordAge bounds how much Prometheus is asked for, and how long ago a node may last have been heard that is chosen.
const maxWordAge = 15 * time.Minute

// maxMoves bounds the moves of one repair: all of them are on its record.
const maxMoves = 4

func (b *builder) buildKilo(raw *rawKilo) {
	if raw == nil {
		return
	}
	at := pointer{"providers", "kilo"}
	b.LabelKey(at.To("topologyLabel"), raw.TopologyLabel)
	out := &Kilo{
		TopologyLabel:     raw.TopologyLabel,
		Prometheus:        b.URLs(at.To("prometheus"), raw.Prometheus),
		HTTPConfig:        b.HTTPConfig(at.To("httpConfig"), raw.HTTPConfig),
		Job:               raw.Job,
		AllowControlPlane: raw.AllowControlPlane,
	}
	if _, err := regexp.Compile(raw.Job); err != nil && !b.Faulty(at.To("job")) {
		b.Fault(at.To("job"), "is no regular expression: %v", err)
	}
	out.Timeout, _ = b.Duration(at.To("timeout"), raw.Timeout, time.Second)
	var ok bool
	if out.MaxAge, ok = b.Duration(at.To("maxAge"), raw.MaxAge, time.Minute); ok && out.MaxAge > maxWordAge {
		b.Fault(at.To("maxAge"), "%s is too long; write at most 15m, an older word says nothing of a node now", raw.MaxAge)
	}
	b.config.Kilo, b.core.TopologyLabel = out, raw.TopologyLabel
}

// aboutLeaders refuses what makes no sense for the leaders of locations.
func (b *builder) aboutLeaders(at pointer, r *rawPolicy) {
	if r.NodeSelector != nil {
		b.Fault(at.To("nodeSelector"), "a policy about leaders selects no nodes: whoever leads the alert's location is meant")
	}
	moves := 0
	for i, step := range r.Plan {
		if step.Attempts != nil && remediations.Registry[step.Step].Target == remediations.KindLocation {
			moves += *step.Attempts
		}
		if moves > maxMoves && !b.Faulty(at.To("plan", i, "attempts")) {
			b.Fault(at.To("plan", i, "attempts"), "makes %d moves of one leader; write at most %d in all, each one drops what it relays", moves, maxMoves)
			return
		}
	}
}
