package inspect

import (
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
)

// because says why nothing is done for the alerts of policies that fire. Empty: none fires.
func (s *Observation) because(all []Alert, decided string) string {
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
		case p.Kind != remediations.KindNode:
			why = fmt.Sprintf("policy %s repairs %s, and `kubectl drydock why` explains only the node's own repair", a.Policy, s.Config.Core.Called(p.Kind))
		case !known:
			why = fmt.Sprintf("alert %s is not on the Node yet", a.Name)
		case decided != "":
			why = decided
		default:
			why = fmt.Sprintf("alert %s is %s", a.Name, a.State)
		}
		if !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	return strings.Join(out, "; ")
}
