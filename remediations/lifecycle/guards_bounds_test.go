package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestControlPlaneHoldsOnlyWhatTakesTheNodeAway: while one control-plane node is under repair, a
// disruptive step on another control-plane node waits. The approval of a sidecar there does not
// wait.
func TestControlPlaneHoldsOnlyWhatTakesTheNodeAway(t *testing.T) {
	conf := scene.LimitsAlone()
	nodes := scene.ControlPlane(scene.Herd(10, 0), 3)
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	f.Occupy(conf, nodes[1], "", false)
	c := &lifecycle.Candidate{State: &lifecycle.State{Config: conf, Node: nodes[0], Fleet: f}, Now: scene.Noon, Policy: &Policy{}, Step: StepRef{Name: "reboot", Attempt: 1}}
	held := func() bool { _, f := c.HeldBy([]Reason{ReasonControlPlaneBusy}); return f != nil }
	require.True(t, held())
	c.Step.Name, c.Kind = "mark-ready", KindSidecar
	require.False(t, held())
}

// TestWouldBeRepairsHoldOnlyEachOther: for a policy that observes, a limit also counts would-be
// repairs. For a policy that enforces, it does not.
func TestWouldBeRepairsHoldOnlyEachOther(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 1}
	nodes := scene.Herd(10, 0)
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	f.Occupy(conf, nodes[1], "", true)
	c := &lifecycle.Candidate{State: &lifecycle.State{Config: conf, Node: nodes[0], Fleet: f}, Now: scene.Noon, Policy: &Policy{Mode: ModeObserve}, Step: StepRef{Name: "reboot", Attempt: 1}}
	require.NotNil(t, lifecycle.GuardAtLimit(c))
	c.Policy.Mode = ModeEnforce
	require.Nil(t, lifecycle.GuardAtLimit(c))
}

// TestCancelledAlertHoldsUntilItFiresAgain: a cancel holds until the alert has a later start. The
// start is the Alertmanagers' or, without their answer, the one in the Node's alert.
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

// TestTheCooldownRestsOnTheStricterOfHistoryAndLedger: a past repair in the history or in the
// ledger alone holds the next one. If the Node has no spec.providerID, repairs of earlier Nodes
// with the same name hold, too, for limits.repairsWindow.
func TestTheCooldownRestsOnTheStricterOfHistoryAndLedger(t *testing.T) {
	entry := Entry{ID: "r1", Policy: "p", Outcome: OutcomeRecovered, Ended: scene.Noon.Add(-30 * time.Minute), Steps: Attempts{{Name: "reboot", Number: 1}}}
	earlier := entry
	earlier.ID, earlier.Ended = "r0", scene.Noon.Add(-50*time.Minute)
	for name, c := range map[string]struct {
		providerID   string
		history      []Entry
		past         []Entry
		ledger       []Entry
		window, held time.Duration
	}{
		"neither":                           {window: time.Hour},
		"the history":                       {history: []Entry{entry}, window: time.Hour, held: 30 * time.Minute},
		"the ledger":                        {ledger: []Entry{entry}, window: time.Hour, held: 30 * time.Minute},
		"the ledger is later":               {history: []Entry{earlier}, ledger: []Entry{entry}, window: time.Hour, held: 30 * time.Minute},
		"the history is later":              {history: []Entry{entry}, ledger: []Entry{earlier}, window: time.Hour, held: 30 * time.Minute},
		"another machine of the name":       {past: []Entry{entry}, window: time.Hour, held: 30 * time.Minute},
		"another machine, too long ago":     {past: []Entry{entry}, window: 30 * time.Minute},
		"another machine, by providerID":    {providerID: "civo://1", past: []Entry{entry}, window: time.Hour},
		"the ledger, whatever the window":   {providerID: "civo://1", ledger: []Entry{entry}, window: time.Minute, held: 30 * time.Minute},
		"the ledger, of another policy yet": {ledger: []Entry{{ID: "r2", Policy: "q", Ended: scene.Noon, Steps: entry.Steps}}, window: time.Hour},
	} {
		p := &Policy{Name: "p", Cooldown: time.Hour}
		conf := &Config{Policies: []*Policy{p}, Limits: Limits{RepairsWindow: c.window}}
		n, l := scene.Bare("n1"), &ledger.Ledger{}
		n.Spec.ProviderID = c.providerID
		for _, e := range c.ledger {
			end, ok := ledger.EndOf(conf, e)
			require.True(t, ok)
			end.Restarted = false
			l.Ended(conf, n, end, scene.Noon)
		}
		s := &lifecycle.State{Config: conf, Node: n, Ledger: l, Journal: Journal{History: c.history, Past: c.past}}
		f := lifecycle.GuardCooldown(&lifecycle.Candidate{State: s, Now: scene.Noon, Policy: p, Step: StepRef{Name: "drain", Attempt: 1}})
		require.Equal(t, c.held != 0, f != nil, name)
		if f != nil {
			require.Equal(t, scene.Noon.Add(c.held), f.Until, name)
		}
	}
}

// TestTheLastCancelOfNodeAndLedgerCounts: CancelOf returns the later cancel of the Node and the
// ledger. A repair of the alert that has acted since ends the ledger's cancel.
func TestTheLastCancelOfNodeAndLedgerCounts(t *testing.T) {
	earlier, later := CancelledRepair{ID: "r1", At: scene.Noon.Add(-time.Hour)}, CancelledRepair{ID: "r2", At: scene.Noon.Add(-time.Minute)}
	acted := Entry{ID: "r3", Cause: scene.FP, Ended: scene.Noon.Add(-time.Second), Steps: Attempts{{Name: "reboot", Number: 1}}}
	held, reset := acted, Entry{ID: "r2", Cause: scene.FP, By: ByPerson, Ended: later.At, Reset: true}
	held.Steps = nil
	before, other, acrossReset := acted, acted, acted
	before.Ended, other.Cause, acrossReset.By, acrossReset.Reset = later.At.Add(-time.Second), "another alert", ByPerson, true
	for name, c := range map[string]struct {
		node, ledger *CancelledRepair
		history      []Entry
		want         *CancelledRepair
	}{
		"neither":                        {},
		"the Node":                       {node: &earlier, want: &earlier},
		"the ledger":                     {ledger: &earlier, want: &earlier},
		"the ledger is later":            {node: &earlier, ledger: &later, want: &later},
		"the Node is later":              {node: &later, ledger: &earlier, want: &later},
		"a repair has acted since":       {ledger: &later, history: []Entry{acted}},
		"a repair was only held since":   {ledger: &later, history: []Entry{held}, want: &later},
		"a repair had acted before":      {ledger: &later, history: []Entry{before}, want: &later},
		"another alert's repair acted":   {ledger: &later, history: []Entry{other}, want: &later},
		"a person has ended what acted":  {ledger: &later, history: []Entry{acrossReset}, want: &later},
		"a person has reset the history": {history: []Entry{reset}},
	} {
		conf, n, l := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}}, scene.Bare("n1"), &ledger.Ledger{}
		a := &Alert{Fingerprint: scene.FP, Policy: "p", Cancelled: c.node}
		if c.ledger != nil {
			l.Ended(conf, n, ledger.CancelOf(*a, *c.ledger, scene.Noon), scene.Noon)
		}
		s := &lifecycle.State{Config: conf, Node: n, Ledger: l, Journal: Journal{History: c.history}}
		require.Equal(t, c.want, s.CancelOf(a, scene.Noon), name)
	}
}
