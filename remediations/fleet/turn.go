package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Turn is a node's position in the order of decisions: if a limit has room for one repair, the
// first takes it. Nodes under repair come first, because their deadlines continue. Then comes the
// oldest firing alert. All others follow by name.
type Turn struct {
	node  *corev1.Node
	rank  int
	since time.Time
}

// TurnOf returns the node's turn. firing is ignored if fires is false.
func TurnOf(n *corev1.Node, firing time.Time, fires bool) Turn {
	switch {
	case remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight():
		return Turn{node: n}
	case fires:
		return Turn{node: n, rank: 1, since: firing}
	}
	return Turn{node: n, rank: 2}
}

// Compare is negative if a comes before b.
func (a Turn) Compare(b Turn) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.since.Compare(b.since), strings.Compare(a.node.Name, b.node.Name))
}

// InTurn sorts the turns and returns their nodes.
func InTurn(turns []Turn) []*corev1.Node {
	slices.SortFunc(turns, Turn.Compare)
	out := make([]*corev1.Node, len(turns))
	for i := range turns {
		out[i] = turns[i].node
	}
	return out
}
