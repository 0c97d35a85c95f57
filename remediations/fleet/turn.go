package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Turn is a node's position in the order of Drydock's decisions. If only one slot is free, the
// first node takes it. Nodes under repair come first, because their deadlines do not wait. Then
// come the nodes with a firing alert, the oldest fault first, and then all other nodes by name.
type Turn struct {
	node  *corev1.Node
	rank  int
	since time.Time
}

// TurnOf returns the node's turn. firing is since when an alert about the node has been firing.
// fires is false if there is no such alert.
func TurnOf(n *corev1.Node, firing time.Time, fires bool) Turn {
	switch {
	case remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight():
		return Turn{node: n}
	case fires:
		return Turn{node: n, rank: 1, since: firing}
	}
	return Turn{node: n, rank: 2}
}

// Compare orders two turns.
func (a Turn) Compare(b Turn) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.since.Compare(b.since), strings.Compare(a.node.Name, b.node.Name))
}

// InTurn returns the nodes of the turns, in order.
func InTurn(turns []Turn) []*corev1.Node {
	slices.SortFunc(turns, Turn.Compare)
	out := make([]*corev1.Node, len(turns))
	for i := range turns {
		out[i] = turns[i].node
	}
	return out
}
