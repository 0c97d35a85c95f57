package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// MeshLeaderKey is the annotation that Kilo's users set to choose a location's leader. Only its
	// presence counts.
	MeshLeaderKey = "kilo.squat.ai/leader"
	// MeshLocationKey is the annotation that names a Node's location in the mesh. It takes
	// precedence over Config.TopologyLabel.
	MeshLocationKey = "kilo.squat.ai/location"
)

// meshLocation returns the location that the Node names as its own.
func meshLocation(c *remediations.Config, n *corev1.Node) string {
	if location, ok := n.Annotations[MeshLocationKey]; ok {
		return location
	}
	return n.Labels[c.TopologyLabel]
}

// leaderRepairOf returns the repair in flight of the leader of the Node's location, recorded on
// another Node; nil: none. The repair also binds each Node that it names, even if that Node names
// another location now.
func leaderRepairOf(c *remediations.Config, n *corev1.Node, nodes []*corev1.Node) *repair {
	for _, on := range nodes {
		if _, ok := on.Annotations[remediations.LocationKey]; !ok || on.Name == n.Name || lifecycle.BreakGlassSet(on) {
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

// names reports whether the move changes the key of that node, or moves the leadership from or to
// it.
func names(m remediations.Move, node string) bool {
	_, changed := m.Before[node]
	return changed || m.From == node || m.To == node
}
