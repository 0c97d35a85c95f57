package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Turn is a node's place in the order of Drydock's decisions: the first node takes a slot that only
// one can have. Nodes under repair come first, because their deadlines do not wait. Then comes the
// node with the oldest fault, and then the others by name.
type Turn struct {
	node  *corev1.Node
	rank  int
	since time.Time
}

// TurnOf returns the node's turn. firing is since when an alert about the node has been firing.
// fires is false without such an alert.
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
