package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestLeadersDoNotCountAgainstNodes: the repair of a leader does not count in the limits of nodes,
// in the breaker, or against a machine. Leaders have a limit of their own.
func TestLeadersDoNotCountAgainstNodes(t *testing.T) {
	c := scene.LimitsAlone()
	c.Limits.Locations = LocationLimits{Concurrent: 1, PerLocation: 15 * time.Minute}
	nodes := scene.Herd(10, 0)
	for i, n := range nodes {
		r := scene.LocationRecord([]Phase{PhaseVerifying, PhaseExhausted}[i%2])
		r.ID = fmt.Sprintf("r%d", i+1)
		n.Annotations[LocationKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
		require.NoError(t, ReadJournal(n).Malformed)
	}
	f := fleet.New(c, nodes, &ledger.Ledger{}, scene.Quiet, scene.Noon)
	require.Zero(t, f.Unhealthy())
	require.Empty(t, f.Breakers)
	require.Empty(t, f.Occupied())
	require.Contains(t, f.LocationsAtLimit(c, "n001", false), "mesh leaders under repair: 5 of at most 1")
	require.Equal(t, "r1", InFlight(nodes[0]).ID, "people are kept from the leader's node")
	l := ledger.Rebuild(c, nodes, scene.Noon)
	require.Empty(t, l.Repairs, "nor do they count against its machine")
	require.Len(t, l.Slots, 5)
	require.Equal(t, KindLocation, l.Slots[0].Kind)
	require.True(t, l.Failing("mesh-leader-degraded"))
}

// TestExhaustedNodeBesideALeaderCountsStill: the label then shows the phase of the leader's repair,
// but the node still counts as unhealthy.
func TestExhaustedNodeBesideALeaderCountsStill(t *testing.T) {
	n := scene.Bare("n1")
	r := Record{V: 1, ID: "r9", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhaseExhausted, Step: StepRef{Name: "reboot", Attempt: 1}, Since: scene.Noon, Intent: &Intent{ID: "r9-0-1", At: scene.Noon}}
	n.Annotations[NodeRepairKey], n.Annotations[LocationKey] = r.Encode(), scene.LocationRecord(PhaseVerifying).Encode()
	n.Labels[PhaseLabel] = string(Registry(nil).LabelFor(n.Annotations))
	f := fleet.New(scene.LimitsAlone(), []*corev1.Node{n}, &ledger.Ledger{}, scene.Quiet, scene.Noon)
	require.Equal(t, 1, f.Unhealthy())
	require.Empty(t, f.Occupied())
	require.Len(t, f.Leading(), 1)
}

// TestSidecarsDoNotOpenABreaker: thirty sidecar repairs on one healthy node, or one on each node,
// are not a storm.
func TestSidecarsDoNotOpenABreaker(t *testing.T) {
	c := scene.LimitsAlone()
	nodes := scene.Herd(10, 0)
	for i, n := range nodes {
		for j := range 1 + 29*(1-min(i, 1)) {
			p := Pod{Namespace: "sei", Name: string(rune('a'+j)) + "-0"}
			r := scene.SidecarRecord([]Phase{PhaseVerifying, PhaseExhausted}[j%2])
			r.Pod = &p
			n.Annotations[SidecarKey(p)] = r.Encode()
		}
		require.NoError(t, ReadJournal(n).Malformed)
	}
	f := fleet.New(c, nodes, &ledger.Ledger{}, func(string) bool { return false }, scene.Noon)
	require.Zero(t, f.Unhealthy())
	require.Empty(t, f.Breakers)
	require.Empty(t, f.Occupied(), "nor do they take a disruptive repair's place")
	require.Len(t, SidecarsInFlight(nodes[0].Annotations), 15, "they are counted for themselves")
	require.Nil(t, InFlight(nodes[0]), "and keep nobody from the node")
	require.Empty(t, ledger.Rebuild(c, nodes, scene.Noon).Repairs, "nor do they count against its machine")
}
