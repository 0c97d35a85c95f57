package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestControlPlaneHoldsOnlyWhatTakesTheNodeAway: the sidecar of a pod may restart there.
func TestControlPlaneHoldsOnlyWhatTakesTheNodeAway(t *testing.T) {
	conf := scene.LimitsAlone()
	nodes := scene.ControlPlane(scene.Herd(10, 0), 3)
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	f.Occupy(conf, nodes[1], false)
	c := &lifecycle.Candidate{State: &lifecycle.State{Config: conf, Node: nodes[0], Fleet: f}, Now: scene.Noon, Policy: &Policy{}, Step: StepRef{Name: "reboot", Attempt: 1}}
	held := func() bool { _, f := c.HeldBy([]Reason{ReasonControlPlaneBusy}); return f != nil }
	require.True(t, held())
	c.Step.Name, c.Kind = "mark-ready", KindSidecar
	require.False(t, held())
}

// TestWouldBeRepairsHoldOnlyEachOther: in observe mode a limit counts what would have begun.
func TestWouldBeRepairsHoldOnlyEachOther(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 1}
	nodes := scene.Herd(10, 0)
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	f.Occupy(conf, nodes[1], true)
	c := &lifecycle.Candidate{State: &lifecycle.State{Config: conf, Node: nodes[0], Fleet: f}, Now: scene.Noon, Policy: &Policy{Mode: ModeObserve}, Step: StepRef{Name: "reboot", Attempt: 1}}
	require.NotNil(t, lifecycle.GuardAtLimit(c))
	c.Policy.Mode = ModeEnforce
	require.Nil(t, lifecycle.GuardAtLimit(c))
}

// TestCancelledAlertHoldsUntilItFiresAgain: by what the Alertmanagers say, else by the alert itself.
func TestCancelledAlertHoldsUntilItFiresAgain(t *testing.T) {
	before, after := scene.Noon.Add(-time.Hour), scene.Noon.Add(-time.Minute)
	for name, c := range map[string]struct {
		said, own time.Time
		held      bool
	}{
		"the same alert":                         {before, before, true},
		"it fires again":                         {after, after, false},
		"Alertmanager knows better that it does": {after, before, false},
		"Alertmanager knows better":              {before, after, true},
		"Alertmanager says nothing":              {time.Time{}, after, false},
		"Alertmanager says nothing of the same":  {time.Time{}, before, true},
	} {
		a := &Alert{Fingerprint: scene.FP, StartsAt: c.own, Cancelled: &CancelledRepair{ID: "r1", At: scene.Noon.Add(-30 * time.Minute)}}
		held := lifecycle.GuardCancelled(&lifecycle.Candidate{State: &lifecycle.State{}, Alert: a, Policy: &Policy{}, Verdict: alerts.Verdict{StartsAt: c.said}})
		require.Equal(t, c.held, held != nil, name)
	}
}
