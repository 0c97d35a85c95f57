package remediations

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestFleetKnowsWhoseLeadershipMoves: what a record, a slot, and the pass itself say of it, and what only would be.
func TestFleetKnowsWhoseLeadershipMoves(t *testing.T) {
	c := limits()
	c.Limits.Locations = LocationLimits{Concurrent: 1}
	r := leaderRecord(Verifying)
	r.Moves = append(r.Moves, theMove("n2", "n3"))
	r.Intent.Successor = "n3"
	n := bare("n1")
	n.Annotations[LocationKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
	slot := Slot{Kind: KindLocation, Node: "n1", Successor: "n3", Location: "eu", Repair: "r1", Attempt: "r1-0-2"}
	fleet := func(slots ...Slot) *Fleet {
		return NewFleet(c, []*corev1.Node{n, bare("n2"), bare("n3")}, &Ledger{Slots: slots}, quiet, noon)
	}

	f := fleet(slot)
	for _, node := range []string{"n1", "n2", "n3"} {
		require.Contains(t, f.locationRepairOn(node), "repair r1 moves the mesh leadership of location eu", "the record knows more than the slot: %s", node)
	}
	require.Empty(t, f.locationRepairOn("n4"))
	require.Contains(t, f.LocationRepairIn("eu", "n2"), "recorded on node n1")

	for kind, minds := range map[Kind]bool{KindNode: true, KindSidecar: false} {
		c := &Candidate{State: &State{Node: bare("n3"), Fleet: f, Ledger: &Ledger{}}, kind: kind}
		_, found := c.HeldBy([]Reason{NodeUnderRepair})
		require.Equal(t, minds, found != nil, "a sidecar does not mind that its node's leadership moves away: %q", kind)
	}

	f.OccupyLocation("n1", r, true)
	require.NotEmpty(t, f.locationRepairOn("n2"), "what would be hides nothing that is")
	f.VacateLocation("n1")
	require.Empty(t, f.locationRepairOn("n1"))
	require.Empty(t, f.LocationsAtLimit(c, "n5", true))

	f.OccupyLocation("n1", r, true)
	require.Empty(t, f.locationRepairOn("n2"), "what would be keeps nobody from a node")
	require.Empty(t, f.LocationRepairIn("eu", "n2"), "nor from a location")
	require.Empty(t, f.LocationsAtLimit(c, "n5", false))
	require.NotEmpty(t, f.LocationsAtLimit(c, "n5", true), "but it counts among its like")

	f.Occupy(c, bare("n2"), true)
	require.False(t, f.NodeRepairOn("n2"))
	f.Occupy(c, bare("n3"), false)
	require.True(t, f.NodeRepairOn("n3"))
}
