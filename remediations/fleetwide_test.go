package remediations

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHoldThatIsTheFleetsIsWrittenOnNoNode: a thousand nodes held by one cause are not a thousand writes.
func TestHoldThatIsTheFleetsIsWrittenOnNoNode(t *testing.T) {
	seen := 0
	for _, g := range goldens(t) {
		s := g.state(t)
		d := Decide(s, noon)
		if d.Verb != Keep {
			require.False(t, d.Fleetwide, g.name)
			continue
		}
		require.True(t, d.Fleetwide || !d.Reason.Fleetwide(), g.name)
		if r := s.Journal.Record; d.Fleetwide && (r == nil || r.Phase == Pending) && !slices.Contains(d.Consume, RequestKey) {
			seen++
			require.Nil(t, d.Record, "%s: no write but one that is due anyway", g.name)
		}
	}
	require.Greater(t, seen, 10)
}

// TestReasonsAreTheNodesOrTheFleets: each reason of the closed list is one or the other, and known.
func TestReasonsAreTheNodesOrTheFleets(t *testing.T) {
	var fleetwide []Reason
	for _, r := range Reasons {
		if r.Fleetwide() {
			fleetwide = append(fleetwide, r)
		}
	}
	require.Equal(t, []Reason{Blind, FleetUnhealthy, OutsideWindow, PolicyFailing, ControlPlaneBusy, AtLimit}, fleetwide)
	require.False(t, Reason("no such reason").Fleetwide())
}
