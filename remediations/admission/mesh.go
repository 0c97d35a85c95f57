package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// MeshLeaderKey is the annotation by which Kilo's users choose a location's leader. Its presence alone counts.
	MeshLeaderKey = "kilo.squat.ai/leader"
	// MeshLocationKey is the annotation that names a Node's location in the mesh; it outranks Config.TopologyLabel.
	MeshLocationKey = "kilo.squat.ai/location"
)

// meshLocation is where the Node says that it is.
func meshLocation(c *remediations.Config, n *corev1.Node) string {
	if location, ok := n.Annotations[MeshLocationKey]; ok {
		return location
	}
	return n.Labels[c.TopologyLabel]
}

// leaderRepairOf is the repair in flight of the leader of the Node's location, which is recorded on another Node. A Node
// that the repair names is bound by it wherever it says that it is. nil: there is none.
func leaderRepairOf(c *remediations.Config, n *corev1.Node, nodes []*corev1.Node) *repair {
	for _, on := range nodes {
		if _, ok := on.Annotations[remediations.LocationKey]; !ok || on.Name == n.Name || lifecycle.BreakGlassSet(on) {
			continue // break-glass there stops the repair
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

// names says whether the move changes the key of that node, or is off or on to it.
func names(m remediations.Move, node string) bool {
	_, changed := m.Before[node]
	return changed || m.From == node || m.To == node
}
