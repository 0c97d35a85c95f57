package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
)

// because says why Drydock does nothing about an alert of a policy or a visible fault, or ""
// without either. decided is the message of the decision about the node.
func (s *Observation) because(all []Alert, targets []TargetAnswer, decided string) string {
	if s.State == nil {
		return s.fault(all)
	}
	onNode := map[string]string{}
	for _, a := range remediations.AlertsOn(s.Node.Annotations) {
		onNode[a.Fingerprint] = a.Status
	}
	var out []string
	for _, a := range all {
		status, known := onNode[a.Fingerprint]
		if a.Policy == "" || (known && status != remediations.StatusFiring) {
			continue
		}
		why := ""
		switch p := s.Config.Core.Policy(a.Policy); {
		case p == nil:
			why = fmt.Sprintf("policy %s is not in Drydock's configuration", a.Policy)
		case p.Mode == remediations.ModeOff:
			why = fmt.Sprintf("policy %s is off", a.Policy)
		case !known:
			why = fmt.Sprintf("Alertmanager has alert %s for policy %s since %s, but Drydock has not written it on the Node; ", a.Name, a.Policy, Stamp(a.StartsAt))
			if a.State == "firing" {
				why += "Drydock writes it there when Alertmanager sends it, or at the next poll of Alertmanager"
			} else {
				why += a.State
			}
		case p.Kind != remediations.KindNode:
			if i := slices.IndexFunc(targets, func(t TargetAnswer) bool { return slices.Contains(t.alerts, a.Fingerprint) }); i >= 0 {
				why = targets[i].Because
			}
		default:
			why = decided
		}
		why = cmp.Or(why, fmt.Sprintf("alert %s is %s", a.Name, a.State))
		if !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	if len(out) == 0 {
		return s.fault(all)
	}
	return strings.Join(out, "; ")
}
