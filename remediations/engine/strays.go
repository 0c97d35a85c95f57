package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/routing"
)

// strayFor is how long an alert must match no policy before Drydock reports it. For example, its
// Node may have been deleted a moment ago, and then the alert ends soon.
const strayFor = 5 * time.Minute

// strays are active alerts that reach Drydock's receiver and match no policy. Usually the label
// that names a remediation has a typing error, or another label names no existing Node. One of them
// is reported.
type strays struct {
	first string
	since time.Time
	says  string
	told  bool
}

// stray is false if the policy is off, has no provider, or does not select the Node: the policy was
// configured that way.
func stray(c *remediations.Config, a alerts.Alert, why remediations.Misroute) bool {
	if !a.Active || !c.Meant(a.Labels) || !a.RoutedHere(c) {
		return false
	}
	switch why {
	case remediations.MisrouteNoTarget, remediations.MisrouteUnknownNode:
		return true
	case remediations.MisrouteNoPolicy:
		return !slices.ContainsFunc(c.Policies, func(p *remediations.Policy) bool { return p.Matches(a.Labels) })
	case remediations.MisrouteNone, remediations.MisrouteOtherCluster, remediations.MisrouteUnknownPod, remediations.MisrouteUnknownLocation:
	}
	return false
}

// saw keeps the earlier choice as long as that alert still matches no policy.
func (s *strays) saw(found map[string]alerts.Alert, c *remediations.Config, node func(name string) *corev1.Node, now time.Time) {
	if _, still := found[s.first]; !still {
		*s = strays{}
		if len(found) == 0 {
			return
		}
		s.first, s.since = slices.Min(slices.Collect(maps.Keys(found))), now
	}
	if s.says = ""; now.Sub(s.since) >= strayFor {
		s.says = strayWords(c, found[s.first].Labels, node)
	}
}

// strayWords quotes label values, so that a space in them is visible.
func strayWords(c *remediations.Config, labels map[string]string, node func(name string) *corev1.Node) string {
	why := fmt.Sprintf("no policy matches its labels; its label %s is %.80q", remediations.RemediationLabel, labels[remediations.RemediationLabel])
	for _, near := range routing.NearMisses(c, labels, node) {
		if p := c.Policy(near.Policy); p != nil && p.Matches(labels) && len(near.Why) > 0 {
			why = fmt.Sprintf("policy %s cannot take it: %.200s", near.Policy, near.Why[0])
			break
		}
	}
	return fmt.Sprintf("the alert %.80q is active and routed to Drydock, but Drydock does nothing for it: %s; correct the label in the rule, or set %s to \"none\" if Drydock is not to act on the alert", labels["alertname"], why, remediations.RemediationLabel)
}

func (p *pass) holdStrays() {
	s := &p.strays
	if s.says == "" {
		return
	}
	const reason = remediations.ReasonAlertUnconfirmed
	says := s.says
	if other := p.holds[reason]; other != "" {
		says = other + "; " + says
	}
	p.holds[reason] = says
	if _, told := p.fleetHolds[reason]; told && !s.told {
		p.Events.Event("", Event{Warning: true, Reason: "RepairHeld", Action: string(reason), Note: string(reason) + ": " + s.says})
	}
	s.told = true
}
