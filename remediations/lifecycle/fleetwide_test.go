package lifecycle_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestHoldThatIsTheFleetsIsWrittenOnNoNode: one cause that holds a thousand nodes must not cause a
// thousand writes. Drydock writes it only on a Node whose record has an older hold of that node
// alone.
func TestHoldThatIsTheFleetsIsWrittenOnNoNode(t *testing.T) {
	seen, corrected := 0, 0
	for _, g := range scene.GoldensIn(t, "../../targets/node/testdata/decide") {
		s := g.State(t)
		d := node.Decide(s, scene.Noon)
		if d.Verb != lifecycle.VerbHold {
			require.False(t, d.Fleetwide, g.Name)
			continue
		}
		require.True(t, d.Fleetwide || !d.Reason.Fleetwide(), g.Name)
		if r := s.Journal.Record; d.Fleetwide && (r == nil || r.Phase == PhasePending) && !slices.Contains(d.Consume, RequestKey) {
			if r != nil && r.Hold != nil && !r.Hold.Reason.Fleetwide() {
				corrected++
				require.Equal(t, d.Reason, d.Record.Hold.Reason, g.Name)
				continue
			}
			seen++
			require.Nil(t, d.Record, "%s: no write but one that is due anyway", g.Name)
		}
	}
	require.Greater(t, seen, 10)
	require.Positive(t, corrected)
}

// TestReasonsAreTheNodesOrTheFleets: this test lists for each reason whether it concerns all nodes.
func TestReasonsAreTheNodesOrTheFleets(t *testing.T) {
	var fleetwide []Reason
	for _, r := range Reasons {
		if r.Fleetwide() {
			fleetwide = append(fleetwide, r)
		}
	}
	require.Equal(t, []Reason{ReasonBlind, ReasonWritesDenied, ReasonStoreWentBack, ReasonFleetUnhealthy, ReasonOutsideWindow, ReasonPolicyFailing, ReasonControlPlaneBusy, ReasonAtLimit, ReasonCommonCause}, fleetwide)
	require.False(t, Reason("no such reason").Fleetwide())
}
