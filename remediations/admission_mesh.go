package remediations

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MeshLocationKey is the annotation that names a Node's location in the mesh; it outranks Config.TopologyLabel.
const MeshLocationKey = "kilo.squat.ai/location"

// meshLocation is where the Node says that it is.
func (c *Config) meshLocation(n *corev1.Node) string {
	if location, ok := n.Annotations[MeshLocationKey]; ok {
		return location
	}
	return n.Labels[c.TopologyLabel]
}

// leaderRepairOf is the repair in flight of the leader of the Node's location, which is recorded on another Node. A Node
// that the repair names is bound by it wherever it says that it is. nil: there is none.
func (c *Config) leaderRepairOf(n *corev1.Node, nodes []*corev1.Node) *occupation {
	for _, on := range nodes {
		if _, ok := on.Annotations[LeaderKey]; !ok || on.Name == n.Name || GlassBroken(on) {
			continue // a broken glass there stops the repair
		}
		r, err := DecodeRecord(on.Annotations[LeaderKey])
		if err != nil || r.Location == "" || !r.Phase.InFlight() {
			continue
		}
		if location := c.meshLocation(n); location == r.Location || slices.ContainsFunc(r.Moves, func(m Move) bool { return m.names(n.Name) }) {
			p := c.Policy(r.Policy)
			return &occupation{node: on.Name, record: r, phase: r.Phase, observed: p != nil && p.Mode == ModeObserve}
		}
	}
	return nil
}

// names says whether the move changes the key of that node, or is off or on to it.
func (m Move) names(node string) bool {
	_, changed := m.Before[node]
	return changed || m.From == node || m.To == node
}
