package coverage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// UnknownRoles returns a message for each node role that may be a control-plane role, although its
// nodes are treated as workers. Such a role shows by its taint: control-plane nodes usually have a
// taint of their role, and workers do not.
func UnknownRoles(nodes []*corev1.Node) (out []string) {
	of := map[string][]string{}
	for _, n := range nodes {
		if remediations.ControlPlane(n) {
			continue
		}
		for _, t := range n.Spec.Taints {
			if role, is := strings.CutPrefix(t.Key, remediations.RolePrefix); is && !slices.Contains(of[role], n.Name) {
				of[role] = append(of[role], n.Name)
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[role])
		out = append(out, fmt.Sprintf("%d Nodes have a taint of the role %s, which Drydock does not count as the control plane, so it repairs them as workers: %s; if they are the control plane, add the label %scontrol-plane to them",
			len(of[role]), text.Line(role, 63), someOf(of[role], maxNamed), remediations.RolePrefix))
	}
	return out
}
