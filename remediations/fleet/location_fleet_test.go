package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestFleetKnowsWhoseLeadershipMoves: it does from a record, from a slot, from the pass itself, and
// for repairs that observe mode would do.
func TestFleetKnowsWhoseLeadershipMoves(t *testing.T) {
	c := scene.LimitsAlone()
	c.Limits.Locations = LocationLimits{Concurrent: 1}
	r := scene.LocationRecord(PhaseVerifying)
	r.Moves = append(r.Moves, scene.TheMove("n2", "n3"))
	r.Intent.Successor = "n3"
	n := scene.Bare("n1")
	n.Annotations[LocationKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
	slot := ledger.Slot{Kind: KindLocation, Node: "n1", Successor: "n3", Location: "eu", Repair: "r1", Attempt: "r1-0-2"}
	fleet := func(slots ...ledger.Slot) *fleet.Fleet {
		return fleet.New(c, []*corev1.Node{n, scene.Bare("n2"), scene.Bare("n3")}, &ledger.Ledger{Slots: slots}, scene.Quiet, scene.Noon)
	}

	f := fleet(slot)
	for _, node := range []string{"n1", "n2", "n3"} {
		require.Contains(t, f.LocationRepairOn(node), "repair r1 moves the mesh leadership of location eu", "the record knows more than the slot: %s", node)
	}
	require.Empty(t, f.LocationRepairOn("n4"))
	require.Contains(t, f.LocationRepairIn("eu", "n2"), "recorded on node n1")

	for kind, minds := range map[Kind]bool{KindNode: true, KindSidecar: false} {
		c := &lifecycle.Candidate{State: &lifecycle.State{Node: scene.Bare("n3"), Fleet: f, Ledger: &ledger.Ledger{}}, Kind: kind}
		_, found := c.HeldBy([]Reason{ReasonNodeUnderRepair})
		require.Equal(t, minds, found != nil, "a sidecar does not mind that its node's leadership moves away: %q", kind)
	}

	f.OccupyLocation("n1", r, true)
	require.NotEmpty(t, f.LocationRepairOn("n2"), "what would be hides nothing that is")
	f.VacateLocation("n1")
	require.Empty(t, f.LocationRepairOn("n1"))
	require.Empty(t, f.LocationsAtLimit(c, "n5", true))

	f.OccupyLocation("n1", r, true)
	require.Empty(t, f.LocationRepairOn("n2"), "what would be keeps nobody from a node")
	require.Empty(t, f.LocationRepairIn("eu", "n2"), "nor from a location")
	require.Empty(t, f.LocationsAtLimit(c, "n5", false))
	require.NotEmpty(t, f.LocationsAtLimit(c, "n5", true), "but it counts among its like")

	f.Occupy(c, scene.Bare("n2"), "", true)
	require.False(t, f.NodeRepairOn("n2"))
	f.Occupy(c, scene.Bare("n3"), "", false)
	require.True(t, f.NodeRepairOn("n3"))
}
