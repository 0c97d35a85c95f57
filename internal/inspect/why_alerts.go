package inspect

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/routing"
)

// Alert is an alert about the node.
type Alert struct {
	Name        string    `json:"alertname"`
	Fingerprint string    `json:"fingerprint"`
	StartsAt    time.Time `json:"startsAt"`
	// Policy is empty if none matches. State says whether the alert fires or what suppresses it.
	Policy string `json:"policy,omitempty"`
	State  string `json:"state"`
	// NearMisses are the policies that nearly match the alert, with what differs.
	NearMisses []routing.NearMiss `json:"nearMisses,omitempty"`
}

func (s *Observation) alerts() (out []Alert) {
	known := map[string]bool{}
	for _, a := range remediations.AlertsOn(s.Node.Annotations) {
		known[a.Fingerprint] = true
		state := a.Status + ", read from the Node"
		t := Alert{Name: a.Name, Fingerprint: a.Fingerprint, StartsAt: a.StartsAt, Policy: a.Policy}
		if s.Asked {
			state = s.said(a.Fingerprint)
			if labels := s.labels(a.Fingerprint); labels != nil {
				t.NearMisses = routing.NearMisses(s.Config.Core, labels, s.State.Fleet.Node)
			}
		}
		t.State = state
		out = append(out, t)
	}
	if !s.Asked {
		return out
	}
	for _, r := range s.State.Snapshot.Replicas {
		for fingerprint, a := range r.Alerts {
			if known[fingerprint] || !s.names(a.Labels) {
				continue
			}
			known[fingerprint] = true
			t := Alert{Name: a.Labels["alertname"], Fingerprint: fingerprint, StartsAt: a.StartsAt, State: s.said(fingerprint)}
			route, why := routing.Of(s.Config.Core, a.Labels, s.State.Fleet.Node)
			if why == remediations.MisrouteNone {
				t.Policy = route.Policy.Name
			}
			t.NearMisses = routing.NearMisses(s.Config.Core, a.Labels, s.State.Fleet.Node)
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Alert) int { return strings.Compare(a.Name+a.Fingerprint, b.Name+b.Fingerprint) })
	return out
}

func (s *Observation) said(fingerprint string) string {
	own := s.State.OwnSilence()
	v := s.State.Snapshot.VerdictFor(fingerprint, s.Config.Core, own)
	if v.Reason == "" {
		return "firing"
	}
	return string(v.Reason) + ": " + v.Message
}

func (s *Observation) labels(fingerprint string) map[string]string {
	for _, r := range s.State.Snapshot.Replicas {
		if a, ok := r.Alerts[fingerprint]; ok {
			return a.Labels
		}
	}
	return nil
}
