package node

import (
	"math"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// refusals returns why Drydock never makes some steps on this node. The text continues another
// message.
func (s *state) refusals(p *remediations.Policy) string {
	var out []string
	for _, step := range p.Plan {
		if refuses := s.Config.Remediation(step.Name).Refuses; refuses != nil && refuses(s.Node) != "" {
			out = append(out, "; "+refuses(s.Node))
		}
	}
	return strings.Join(slices.Compact(out), "")
}

// Causes returns the alerts that a policy takes. The one with the least invasive first step comes
// first, so that a more invasive plan does not begin before a milder one. Among equals the oldest
// comes first.
func (s *state) Causes() []*remediations.Alert {
	type ranked struct {
		*remediations.Alert
		invasive int
	}
	var all []ranked
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		p := s.Config.Policy(a.Policy)
		if p == nil || p.Mode == remediations.ModeOff || p.Kind != remediations.KindNode {
			continue
		}
		r := ranked{a, math.MaxInt}
		if step, ok := s.FirstStep(p, s.Record); ok {
			r.invasive = s.Config.Remediation(step.Name).Invasive
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return a.invasive - b.invasive })
	out := make([]*remediations.Alert, len(all))
	for i, r := range all {
		out[i] = r.Alert
	}
	return out
}

func (s *state) also(r *remediations.Record) []string {
	var out []string
	for _, a := range s.Causes() {
		if a.Fingerprint != r.Cause.Alert && s.Snapshot.VerdictFor(a.Fingerprint, s.Config, s.OwnSilence()).Reason == "" && len(out) < remediations.AlsoMost {
			out = append(out, a.Fingerprint)
		}
	}
	return out
}

// Likely returns the step that would come next if Alertmanager confirmed the alert, so that its
// provider can be asked in advance. Zero means that there is nothing to ask.
func (s *state) Likely(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn {
	step, ok := s.FirstStep(p, s.Record)
	if !ok || s.Ledger == nil {
		return remediations.StepOn{}
	}
	c := s.Candidate(p, a, remediations.Cause{}, step, now)
	c.Verdict = alerts.Verdict{} // as if no Alertmanager held the repair
	if r := s.Record; r != nil {
		c.Own = r.ID
	}
	if _, f := c.HeldBy(nil); f != nil || s.surveyOf(c) != nil || s.trouble(c) != nil {
		return remediations.StepOn{}
	}
	return ask(c)
}
