package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestHowABreakerContinues: each case starts from a breaker in the ledger, and checks the breaker
// one minute later.
func TestHowABreakerContinues(t *testing.T) {
	minute := func(m int) time.Time { return scene.Noon.Add(time.Duration(m) * time.Minute) }
	const closed = ledger.BreakerState("")
	held := func(n *corev1.Node) {
		recorded(n, func(r *Record) {
			r.ID, r.Phase, r.Hold = "r1", PhasePending, &Hold{Reason: ReasonPaused, Message: "why", Since: scene.Noon}
		})
	}
	underWay := func(n *corev1.Node) {
		recorded(n, func(r *Record) { r.ID, r.Hold = "r1", &Hold{Reason: ReasonPaused, Message: "why", Since: scene.Noon} })
	}
	cured := func(n *corev1.Node) {
		n.Annotations[HistoryKey] = EncodeHistory(nil, Entry{ID: "r1", Outcome: OutcomeRecovered})
	}
	for name, c := range map[string]struct {
		was   ledger.Breaker
		bad   int
		node  func(n *corev1.Node)
		state ledger.BreakerState
		quiet time.Time
		trial string
	}{
		"open, calm for 2m":                                       {was: ledger.Breaker{State: ledger.BreakerOpen, Quiet: minute(-1), Seen: minute(0)}, state: ledger.BreakerOpen, quiet: minute(-1)},
		"open, calm for 10m":                                      {was: ledger.Breaker{State: ledger.BreakerOpen, Quiet: minute(-9), Seen: minute(0)}, state: ledger.BreakerHalfOpen, quiet: minute(1)},
		"open, not judged in the last minute":                     {was: ledger.Breaker{State: ledger.BreakerOpen, Quiet: minute(-1), Seen: minute(0), Frozen: true}, state: ledger.BreakerOpen, quiet: minute(0)},
		"open, not judged, the clock was set back":                {was: ledger.Breaker{State: ledger.BreakerOpen, Quiet: minute(-1), Seen: minute(5), Frozen: true}, state: ledger.BreakerOpen, quiet: minute(-1)},
		"open, of a version that did not note when it was judged": {was: ledger.Breaker{State: ledger.BreakerOpen, Quiet: minute(-2)}, state: ledger.BreakerOpen, quiet: minute(-2)},
		"open, with a trial that cured":                           {was: ledger.Breaker{State: ledger.BreakerOpen, Quiet: minute(-1), Seen: minute(0), Trial: "r1"}, node: cured, state: ledger.BreakerOpen, quiet: minute(-1), trial: "r1"},
		"half open, with a trial that cured":                      {was: ledger.Breaker{State: ledger.BreakerHalfOpen, Quiet: minute(-1), Seen: minute(0), Trial: "r1"}, node: cured, state: closed},
		"half open, its trial is held":                            {was: ledger.Breaker{State: ledger.BreakerHalfOpen, Quiet: minute(-1), Seen: minute(0), Trial: "r1"}, node: held, state: ledger.BreakerHalfOpen, quiet: minute(1)},
		"half open, its trial is under way":                       {was: ledger.Breaker{State: ledger.BreakerHalfOpen, Quiet: minute(-1), Seen: minute(0), Trial: "r1"}, node: underWay, state: ledger.BreakerHalfOpen, quiet: minute(1), trial: "r1"},
		"half open, calm for 2m":                                  {was: ledger.Breaker{State: ledger.BreakerHalfOpen, Quiet: minute(-1), Seen: minute(0)}, state: ledger.BreakerHalfOpen, quiet: minute(-1)},
		"half open, a node is unhealthy":                          {was: ledger.Breaker{State: ledger.BreakerHalfOpen, Quiet: minute(-20), Seen: minute(0)}, bad: 1, state: ledger.BreakerHalfOpen, quiet: minute(1)},
		"half open, calm for 10m":                                 {was: ledger.Breaker{State: ledger.BreakerHalfOpen, Quiet: minute(-9), Seen: minute(0)}, state: closed},
		"closed":                                                  {state: closed},
		"closed, over the limit":                                  {bad: 5, state: ledger.BreakerOpen, quiet: minute(1)},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.Herd(10, c.bad)
			if c.node != nil {
				c.node(nodes[9])
			}
			recorded(nodes[8], func(r *Record) { r.ID = "r2" }) // another repair, and a node without one that a pass looks at
			nodes[7].Annotations[PauseKey] = "true"
			l := &ledger.Ledger{Status: ledger.Status{Breakers: map[string]ledger.Breaker{"unknown/a": {State: ledger.BreakerOpen}}}}
			if c.was.State != closed {
				l.Status.Breakers[ledger.ScopeCluster] = c.was
			}
			f := scene.FleetOf(scene.LimitsAlone(), nodes, l, minute(1))
			b := f.Breakers[ledger.ScopeCluster]
			require.Equal(t, []any{c.state, c.quiet, c.trial}, []any{b.State, b.Quiet, b.Trial})
			require.NotContains(t, f.Breakers, "unknown/a", "a scope that this version does not know has no breaker")
		})
	}
}

// TestTheBreakerOfTheOnlyZoneContinues: the other zones were deleted after the breaker had opened.
func TestTheBreakerOfTheOnlyZoneContinues(t *testing.T) {
	l := &ledger.Ledger{Status: ledger.Status{Breakers: map[string]ledger.Breaker{"zone/a": {State: ledger.BreakerOpen, Quiet: scene.Noon, Seen: scene.Noon}}}}
	at := scene.Noon.Add(time.Minute)
	f := scene.FleetOf(scene.LimitsAlone(), scene.Herd(10, 5, "a"), l, at)
	require.Equal(t, at, f.Breakers["zone/a"].Quiet, "its nodes are still unhealthy")
	require.Equal(t, 10, f.Breakers["zone/a"].Nodes)
}

// TestWhichNodeHasTheTrial: the node has the trial's record, or this pass has begun the trial on
// it.
func TestWhichNodeHasTheTrial(t *testing.T) {
	nodes := scene.Herd(6, 0)
	for i, id := range []string{"r1", "r2"} {
		recorded(nodes[i], func(r *Record) { r.ID = id })
	}
	recorded(nodes[2], func(r *Record) { r.ID, r.Phase = "r3", PhaseExhausted })
	nodes[3].Annotations[PauseKey] = "true" // it has no record
	f := scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon)
	f.Try("", "n004", "r4")
	f.Try("", "n005", "r5")
	for repair, want := range map[string]string{"r1": "n000", "r2": "n001", "r3": "", "r4": "n004", "r5": "n005", "r6": ""} {
		for range 5 { // in whatever order a map gives its entries
			require.Equal(t, want, f.NodeOf(repair), repair)
		}
	}
}

// TestOnlyAnOpenBreakerStops: a half-open breaker allows a trial.
func TestOnlyAnOpenBreakerStops(t *testing.T) {
	now := scene.Noon.Add(time.Minute)
	open := ledger.Breaker{State: ledger.BreakerOpen, Unhealthy: 3, Nodes: 10, Quiet: now}
	for name, c := range map[string]struct {
		breakers map[string]ledger.Breaker
		want     fleet.Stop
		stops    bool
	}{
		"none":                    {},
		"half open":               {breakers: map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerHalfOpen}}},
		"another zone's":          {breakers: map[string]ledger.Breaker{"zone/b": open}},
		"open":                    {map[string]ledger.Breaker{ledger.ScopeCluster: open}, fleet.Stop{Scope: ledger.ScopeCluster, Unhealthy: 3, Nodes: 10}, true},
		"the zone's":              {map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerHalfOpen}, "zone/a": open}, fleet.Stop{Scope: "zone/a", Unhealthy: 3, Nodes: 10}, true},
		"open, calm for a minute": {map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerOpen, Quiet: scene.Noon}}, fleet.Stop{Scope: ledger.ScopeCluster, Calm: scene.Noon}, true},
	} {
		f := &fleet.Fleet{Breakers: c.breakers}
		got, stops := f.Stopped("a", now)
		require.Equal(t, c.stops, stops, name)
		require.Equal(t, c.want, got, name)
	}
}

// TestTheFirstOfSeveralBusyNodesIsNamed: so the message stays the same from pass to pass.
func TestTheFirstOfSeveralBusyNodesIsNamed(t *testing.T) {
	nodes := scene.Herd(9, 0)
	for _, n := range nodes[1:] {
		scene.InFlight(n, "reboot")
	}
	f := scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon)
	for range 10 {
		require.Equal(t, "n001", f.Busy(ledger.ScopeCluster, "n000"))
		require.Equal(t, "n002", f.Busy(ledger.ScopeCluster, "n001"))
	}
}

// TestARepairUnderWayIsTheTrialEvenIfItsRecordHasAHold: only the hold of a Pending repair holds the
// next step.
func TestARepairUnderWayIsTheTrialEvenIfItsRecordHasAHold(t *testing.T) {
	for phase, want := range map[Phase]string{PhaseVerifying: "n001", PhasePending: ""} {
		nodes := scene.Herd(3, 0)
		recorded(nodes[1], func(r *Record) {
			r.Policy, r.Phase, r.Hold = "p", phase, &Hold{Reason: ReasonPaused, Message: "why", Since: scene.Noon}
		})
		f := scene.FleetOf(withCommonCause(three), nodes, nil, scene.Noon)
		f.Begin(begunTogether(nodes...))
		require.Equal(t, want, f.Common("p", "n000").Tried, phase)
	}
}

// TestWhichProviderARepairUses: it is the provider in the intent of a step in flight, or the
// provider of the next step that needs one. For a slot without a record, the step of the slot's
// attempt counts.
func TestWhichProviderARepairUses(t *testing.T) {
	const policy = "another-policy"
	attempt := func(index string) ledger.Slot {
		return ledger.Slot{Node: "n1", Policy: policy, Repair: "r1", Attempt: "r1-" + index + "-1", ProviderID: "civo://n1"}
	}
	orphan := func(repair string, intent *Intent) ledger.Orphan {
		return ledger.Orphan{Node: "n1", Record: Record{ID: repair, Policy: policy, Step: StepRef{Index: 2, Name: "replace", Attempt: 1}, Intent: intent}}
	}
	for name, c := range map[string]struct {
		providerID string // of the Node; empty: there is no Node
		record     func(r *Record)
		slots      []ledger.Slot
		orphans    []ledger.Orphan
		want       string
	}{
		"its intent names one":                      {providerID: "civo://n1", record: func(r *Record) { r.Intent.Provider = "bmc" }, want: "bmc"},
		"its intent names none":                     {providerID: "civo://n1", record: func(r *Record) { r.Step.Index = 1 }, want: "civo"},
		"parked, its last intent names one":         {providerID: "civo://n1", record: func(r *Record) { parkedAs(r); r.Intent.Provider = "bmc" }, want: "civo"},
		"parked, without an intent":                 {providerID: "civo://n1", record: func(r *Record) { parkedAs(r); r.Intent = nil }, want: "civo"},
		"its slot and its record":                   {providerID: "civo://n1", record: func(r *Record) { r.ID, r.Intent.Provider = "r1", "bmc" }, slots: []ledger.Slot{attempt("1")}, want: "bmc"},
		"the slot of another repair than on record": {providerID: "civo://n1", record: func(r *Record) { r.Intent.Provider = "bmc" }, slots: []ledger.Slot{attempt("1")}, want: "civo"},
		"a slot, and another machine by its name":   {providerID: "bmc://n1", slots: []ledger.Slot{attempt("1")}, want: "bmc"},
		"a slot without a Node":                     {slots: []ledger.Slot{attempt("1")}, want: "civo"},
		"an orphan":                                 {slots: []ledger.Slot{attempt("2")}, orphans: []ledger.Orphan{orphan("r1", &Intent{ID: "r1-2-1", Provider: "bmc"})}, want: "bmc"},
		"the second orphan":                         {slots: []ledger.Slot{attempt("2")}, orphans: []ledger.Orphan{orphan("r9", &Intent{ID: "r9-2-1", Provider: "other"}), orphan("r1", &Intent{ID: "r1-2-1", Provider: "bmc"})}, want: "bmc"},
		"an orphan without an intent":               {slots: []ledger.Slot{attempt("2")}, orphans: []ledger.Orphan{orphan("r1", nil)}, want: "civo"},
		"another repair's orphan":                   {slots: []ledger.Slot{attempt("2")}, orphans: []ledger.Orphan{orphan("r9", &Intent{ID: "r9-2-1", Provider: "bmc"})}, want: "civo"},
	} {
		t.Run(name, func(t *testing.T) {
			conf, _ := ofOneProvider()
			var nodes []*corev1.Node
			if c.providerID != "" {
				n := scene.Bare("n1")
				n.Spec.ProviderID = c.providerID
				if c.record != nil {
					recorded(n, c.record)
					n.Spec.Unschedulable = true
				}
				nodes = append(nodes, n)
			}
			f := scene.FleetOf(conf, nodes, &ledger.Ledger{Slots: c.slots, Orphans: c.orphans}, scene.Noon)
			require.Equal(t, c.want, f.ProviderOf("n1"))
		})
	}
}

// parkedAs changes the record to that of a drained node whose next step is held.
func parkedAs(r *Record) {
	r.Phase, r.Step, r.Done = PhasePending, StepRef{Index: 1, Name: "reboot", Attempt: 1}, Attempts{{Name: "drain", Number: 1}}
	r.Deadline, r.Undo = scene.Noon.Add(time.Hour), []Undo{{Kind: UndoCordon, At: scene.Noon}}
}
