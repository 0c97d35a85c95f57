package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestControlPlaneHoldsOnlyWhatTakesTheNodeAway: the sidecar of a pod may restart there.
func TestControlPlaneHoldsOnlyWhatTakesTheNodeAway(t *testing.T) {
	conf := limits()
	nodes := controlPlane(herd(10, 0), 3)
	f := fleetOf(conf, nodes, nil, noon)
	f.Occupy(conf, nodes[1], false)
	c := &Candidate{State: &State{Config: conf, Node: nodes[0], Fleet: f}, Now: noon, Policy: &Policy{}, Step: StepRef{Name: "reboot", Attempt: 1}}
	held := func() bool { _, f := c.HeldBy([]Reason{ControlPlaneBusy}); return f != nil }
	require.True(t, held())
	c.Step.Name, c.kind = "mark-ready", KindSidecar
	require.False(t, held())
}

// TestWouldBeRepairsHoldOnlyEachOther: in observe mode a limit counts what would have begun.
func TestWouldBeRepairsHoldOnlyEachOther(t *testing.T) {
	conf := limits()
	conf.Limits.Concurrent = Quantity{Value: 1}
	nodes := herd(10, 0)
	f := fleetOf(conf, nodes, nil, noon)
	f.Occupy(conf, nodes[1], true)
	c := &Candidate{State: &State{Config: conf, Node: nodes[0], Fleet: f}, Now: noon, Policy: &Policy{Mode: ModeObserve}, Step: StepRef{Name: "reboot", Attempt: 1}}
	require.NotNil(t, atLimit(c))
	c.Policy.Mode = ModeEnforce
	require.Nil(t, atLimit(c))
}

// TestCancelledAlertHoldsUntilItFiresAgain: by what the Alertmanagers say, else by the alert itself.
func TestCancelledAlertHoldsUntilItFiresAgain(t *testing.T) {
	before, after := noon.Add(-time.Hour), noon.Add(-time.Minute)
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
		a := &Alert{Fingerprint: fp, StartsAt: c.own, Cancelled: &CancelledRepair{ID: "r1", At: noon.Add(-30 * time.Minute)}}
		held := cancelled(&Candidate{State: &State{}, alert: a, Policy: &Policy{}, Verdict: Verdict{StartsAt: c.said}})
		require.Equal(t, c.held, held != nil, name)
	}
}

// TestCancelIsRememberedOnItsAlert before the history forgets it, once.
func TestCancelIsRememberedOnItsAlert(t *testing.T) {
	by := CancelledRepair{ID: "r1", At: noon}
	other := CancelledRepair{ID: "r0", At: noon}
	history := []Entry{{ID: "r1", Cause: fp, By: ByPerson, Ended: noon}}
	for name, c := range map[string]struct {
		knows   *CancelledRepair
		history []Entry
		prune   []string
		writes  bool
	}{
		"it is new":                       {history: history, writes: true},
		"an earlier one was remembered":   {knows: &other, history: history, writes: true},
		"it was remembered":               {knows: &by, history: history},
		"no person cancelled anything":    {},
		"the alert is removed altogether": {history: history, prune: []string{(&Alert{Fingerprint: fp}).Key()}},
	} {
		s := &State{Journal: Journal{Alerts: []Alert{{Fingerprint: fp, Cancelled: c.knows}}, History: c.history}}
		d := Decision{Prune: c.prune}
		s.remember(&d)
		require.Equal(t, c.writes, len(d.Alerts) == 1, name)
		if c.writes {
			require.Equal(t, &by, d.Alerts[0].Cancelled, name)
		}
	}
}
