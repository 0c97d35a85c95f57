package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// MeshLeaderKey is the annotation that Kilo's users set to choose a location's leader, with any
	// value.
	MeshLeaderKey = "kilo.squat.ai/leader"
	// MeshLocationKey is the annotation with a Node's location in the mesh. It takes precedence
	// over Config.TopologyLabel.
	MeshLocationKey = "kilo.squat.ai/location"
)

// The annotation takes precedence over the label.
func meshLocation(c *remediations.Config, n *corev1.Node) string {
	if location, ok := n.Annotations[MeshLocationKey]; ok {
		return location
	}
	return n.Labels[c.TopologyLabel]
}

// leaderRepairOf looks for a repair in flight of the leader of the Node's mesh location, among the
// records on other Nodes. It also finds the repair of another location that moves leadership to or
// from this Node.
func leaderRepairOf(c *remediations.Config, n *corev1.Node, nodes []*corev1.Node) *repair {
	for _, on := range nodes {
		if on.Name == n.Name || lifecycle.BreakGlassSet(on) {
			continue // break-glass on that Node stops the repair
		}
		r, err := remediations.DecodeRecord(on.Annotations[remediations.LocationKey])
		if err != nil || r.Location == "" || !r.Phase.InFlight() {
			continue
		}
		if location := meshLocation(c, n); location == r.Location || slices.ContainsFunc(r.Moves, func(m remediations.Move) bool { return names(m, n.Name) }) {
			p := c.Policy(r.Policy)
			return &repair{node: on.Name, record: r, phase: r.Phase, observed: p != nil && p.Mode == remediations.ModeObserve}
		}
	}
	return nil
}

// The move takes the leadership from the node, gives it to the node, or changes the node's leader
// annotation.
func names(m remediations.Move, node string) bool {
	_, changed := m.Before[node]
	return changed || m.From == node || m.To == node
}
