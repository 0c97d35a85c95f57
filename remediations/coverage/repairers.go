package coverage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Repairer is another system that repairs nodes.
type Repairer struct {
	// The object that makes the other system active, for messages, for example "MachineHealthCheck
	// default/workers".
	Object string
	// Repairs reports whether the other system repairs the node.
	Repairs func(*corev1.Node) bool
	// How Drydock's settings can keep the other system away from the node, as the end of a message.
	// Empty if only the other system's settings can.
	Advice string
}

// Managed returns the repair systems of clouds, and of Gardener, that a label on their Nodes shows.
// docs/operate/other-systems.md names the sources.
func Managed() []Repairer {
	return []Repairer{
		{Object: "AKS node auto-repair (label kubernetes.azure.com/cluster)", Repairs: func(n *corev1.Node) bool { return n.Labels["kubernetes.azure.com/cluster"] != "" }},
		{Object: "EKS Auto Mode (label eks.amazonaws.com/compute-type=auto)", Repairs: func(n *corev1.Node) bool { return n.Labels["eks.amazonaws.com/compute-type"] == "auto" }},
		{Object: "Gardener's machine-controller-manager (label node.gardener.cloud/machine-name)", Repairs: func(n *corev1.Node) bool { return n.Labels["node.gardener.cloud/machine-name"] != "" }},
		{Object: "GKE node auto-repair, unless it is off for the node pool (label cloud.google.com/gke-nodepool),", Repairs: func(n *corev1.Node) bool { return n.Labels["cloud.google.com/gke-nodepool"] != "" }},
	}
}

// Contested returns a message for each other system that repairs Nodes that Drydock's policies
// repair, too.
func Contested(c *remediations.Config, nodes []*corev1.Node, others []Repairer) (out []string) {
	for _, other := range others {
		var both []string
		for _, n := range nodes {
			if other.Repairs(n) && disrupts(c, n) {
				both = append(both, n.Name)
			}
		}
		advice := ""
		if other.Advice != "" {
			advice = ": " + other.Advice
		}
		if len(both) > 0 {
			slices.Sort(both)
			out = append(out, fmt.Sprintf("two systems may repair the same node: %s repairs %s that Drydock's policies also repair: %s; use only one of the two%s (docs/operate/other-systems.md)", other.Object, text.Count(len(both), "Node"), someOf(both, maxNamed), advice))
		}
	}
	return out
}

// disrupts means that a policy takes the node and has a disruptive step that this installation can
// carry out. Policies in the mode off do not count.
func disrupts(c *remediations.Config, n *corev1.Node) bool {
	return slices.ContainsFunc(c.Policies, func(p *remediations.Policy) bool {
		return p.Kind == remediations.KindNode && p.Mode != remediations.ModeOff && p.Takes(n) && slices.ContainsFunc(p.Plan, func(s remediations.Step) bool {
			return c.Remediation(s.Name).Disruptive && c.Provides(s)
		})
	})
}
