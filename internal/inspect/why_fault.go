package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/rules"
)

// readWithin is the largest age of data about a fault. Older data are ignored.
const readWithin = time.Minute

// fault is for a node without a firing alert of a policy. It says what is visibly wrong, and which
// alert Drydock waits for, or "".
func (s *Observation) fault(all []Alert) string {
	var saw, awaited []string
	var due time.Time // when the first of the awaited alerts should have arrived
	if unready(s.Node) {
		saw = append(saw, signs.Weigh([]signs.Sign{{Kind: signs.NotReady}}, s.Node, nil, time.Time{}, s.Now).Saw...)
	}
	if s.State == nil {
		if len(saw) == 0 {
			return ""
		}
		return saw[0] + ", but no alert of a policy fires for the node; without Drydock's configuration it is unknown which alert Drydock waits for"
	}
	shipped, err := rules.Shipped()
	if err != nil {
		s.lines = append(s.lines, "the shipped rules: "+err.Error())
	}
	for _, r := range shipped {
		p, ill := s.awaits(r)
		if len(ill) == 0 {
			continue
		}
		for _, one := range ill {
			if !slices.Contains(saw, one) {
				saw = append(saw, one)
			}
		}
		says := fmt.Sprintf("alert %s of policy %s", r.Alert, p.Name)
		if r.Waits != "" {
			says += fmt.Sprintf(" (the shipped rule waits %s)", r.Waits)
		}
		awaited = append(awaited, says)
		if by := s.readyBy(r); !by.IsZero() && (due.IsZero() || by.Before(due)) {
			due = by
		}
	}
	if len(saw) == 0 {
		return ""
	}
	says := strings.Join(saw, "; ") + ", but no alert of a policy fires for the node; "
	if len(awaited) == 0 {
		says += "no shipped rule makes an alert about this fault that a policy matches"
	} else {
		says += "Drydock waits for " + strings.Join(awaited, " or ")
	}
	return says + "; " + s.askedFor(all, due)
}

// grace is added to a rule's wait: Prometheus evaluates rules and Alertmanager sends groups only at
// intervals.
const grace = 2 * time.Minute

// readyBy returns when the alert should have reached Alertmanager, or zero if that is unknown.
func (s *Observation) readyBy(r rules.Rule) time.Time {
	wait := r.Wait()
	if wait == 0 || !unready(s.Node) {
		return time.Time{}
	}
	return remediations.ReadyCondition(s.Node).LastTransitionTime.Add(wait + grace)
}

// awaits returns the policy that would match the rule's alert, or nil. ill has the signs of its
// witness that the node shows now.
func (s *Observation) awaits(r rules.Rule) (p *remediations.Policy, ill []string) {
	core, labels := s.Config.Core, maps.Clone(r.Labels)
	labels["alertname"], labels["node"] = r.Alert, s.Node.Name
	if core.ClusterLabel != "" {
		labels[core.ClusterLabel] = core.ClusterValue
	}
	route, why := routing.Of(core, labels, s.State.Fleet.Node)
	if why != remediations.MisrouteNone || route.Policy.Kind != remediations.KindNode || route.Policy.Witness == nil {
		return nil, nil
	}
	for _, sign := range route.Policy.Witness.Signs {
		if w := signs.Weigh([]signs.Sign{sign}, s.Node, s.State.Read, s.Now.Add(-readWithin), s.Now); w.Ill {
			ill = append(ill, w.Saw...)
		}
	}
	return route.Policy, ill
}

// askedFor says which alerts the Alertmanagers have. due is when the expected alert should have
// arrived, or zero if that is unknown.
func (s *Observation) askedFor(all []Alert, due time.Time) string {
	if !s.Asked {
		return "Alertmanager was not asked: give its address with --alertmanager URL"
	}
	var names []string
	for _, a := range all {
		if a.Policy == "" && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	switch {
	case !slices.ContainsFunc(s.State.Snapshot.Replicas, func(r alerts.Replica) bool { return r.Err == nil }):
		return "no Alertmanager answered"
	case len(names) == 0 && !due.IsZero() && s.Now.After(due):
		return fmt.Sprintf("Alertmanager does not have this alert, although it should have since %s: check in Prometheus that this rule is loaded and that kube-state-metrics is scraped (`kubectl drydock status`, line SelfTest)", Stamp(due))
	case len(names) == 0:
		return "Alertmanager does not have this alert"
	}
	return "Alertmanager has other alerts about the node, but no policy matches them: " + strings.Join(names, ", ")
}
