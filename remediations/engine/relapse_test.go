package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// relapsing is a fleet whose policy reboots twice, and treats an alert that comes back within an
// hour as a relapse.
func relapsing() *remediations.Config {
	c := modelConfig()
	c.Policies[0].RelapseWindow, c.Limits.RepairsPerNode = time.Hour, 9
	return c
}

// cure makes n0 fail, be rebooted, and stay healthy until the proof exists.
func cure(t *testing.T, w *world, outcomes int) {
	w.do(func() { w.ail("n0", 1) })
	require.True(t, w.until(20*time.Minute, func() bool { return len(w.ended) == outcomes }))
	require.Equal(t, remediations.OutcomeRecovered, at(w, func() remediations.Outcome { return w.ended[outcomes-1].Outcome }), "%v", w.ended)
}

// TestRelapseContinuesThePlan: a fault that comes back within the window does not restart with the
// first attempt for ever. The earlier ends count as failed. When the plan has ended, a person must
// act, even if the leader or the Node's registration changed meanwhile. If the fault comes back
// later, the plan begins again.
func TestRelapseContinuesThePlan(t *testing.T) {
	for name, test := range map[string]struct {
		well      time.Duration
		meanwhile func(w *world)
		exhausted bool
	}{
		"within the window":           {20 * time.Minute, func(*world) {}, true},
		"another leads":               {20 * time.Minute, func(w *world) { w.restart(w.config) }, true},
		"the Node is registered anew": {20 * time.Minute, func(w *world) { w.do(func() { w.register("n0") }); w.pass(2 * time.Minute) }, true},
		"the ledger is deleted":       {20 * time.Minute, func(w *world) { w.do(func() { w.ledger = nil }); w.restart(w.config) }, true},
		"later, the control":          {70 * time.Minute, func(*world) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, relapsing(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				cure(t, w, 1)
				w.pass(test.well)
				test.meanwhile(w)
				cure(t, w, 2)
				steps := at(w, func() []string { return w.ended[1].Steps.Texts() })
				if !test.exhausted {
					require.Equal(t, []string{"reboot:1"}, steps)
					return
				}
				require.Equal(t, []string{"reboot:2"}, steps)
				require.Equal(t, at(w, func() string { return w.ended[0].ID }), at(w, func() string { return w.ended[1].After }))
				w.pass(test.well)
				test.meanwhile(w)
				w.do(func() { w.ail("n0", 1) })
				w.pass(10 * time.Minute)
				require.Equal(t, 2, w.callCount(), "nothing is left of the plan")
				require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
				require.True(t, w.nodeOf("n0").Spec.Unschedulable)
				l := at(w, func() *ledger.Ledger { return mustLedger(w) })
				if name == "within the window" || name == "another leads" {
					require.True(t, l.Failing("node-not-ready"), "two relapses and a plan that ran out: %v", l.Status.Ends)
					history := remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])
					require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted, remediations.OutcomeRelapsed, remediations.OutcomeRelapsed}, []remediations.Outcome{history[0].Outcome, history[1].Outcome, history[2].Outcome})
				}
				w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
				w.pass(10 * time.Minute)
				require.Equal(t, 3, w.callCount(), "a person's reset begins anew")
			})
		})
	}
}

// TestAConditionThatIsFalseOnlyAfterEachBootDoesNotCountAsCure: node-problem-detector writes all
// its conditions as False when it starts, before any check has run. So the fault of a machine that
// no reboot cures is visible again some minutes after each boot. The repair that counted as
// Recovered in between counts as failed, the plan continues, and it ends Exhausted. Without a
// relapseWindow, the control, the plan begins again each time.
func TestAConditionThatIsFalseOnlyAfterEachBootDoesNotCountAsCure(t *testing.T) {
	for name, test := range map[string]struct {
		window time.Duration
		steps  []string
	}{
		"within relapseWindow":          {time.Hour, []string{"reboot:1", "reboot:2"}},
		"without a window, the control": {0, []string{"reboot:1", "reboot:1", "reboot:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := relapsing()
			c.Policies[0].RelapseWindow = test.window
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				for range 3 {
					w.do(func() { w.breakDown("n0", 1) }) // the check finds the fault; the next boot hides it again
					w.pass(12 * time.Minute)
				}
				var steps []string
				for _, e := range at(w, func() []remediations.Entry { return w.ended }) {
					steps = append(steps, e.Steps.Texts()...)
				}
				require.Equal(t, test.steps, steps)
				history := remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])
				if test.window == 0 {
					require.Equal(t, remediations.OutcomeRecovered, history[0].Outcome)
					return
				}
				require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
				for _, e := range history {
					require.NotEqual(t, remediations.OutcomeRecovered, e.Outcome, "%s", e.ID)
				}
			})
		})
	}
}

// TestRelapseOfATrialOpensTheBreakerAgain: a cure that did not last shows that the storm has not
// ended.
func TestRelapseOfATrialOpensTheBreakerAgain(t *testing.T) {
	for name, window := range map[string]time.Duration{"a relapse": time.Hour, "no relapse, the control": 0} {
		t.Run(name, func(t *testing.T) {
			c := relapsing()
			c.Policies[0].RelapseWindow = window
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					for _, n := range nodeNames[:5] {
						w.ail(n, 1)
					}
				})
				w.pass(time.Minute)
				w.do(func() {
					for _, n := range nodeNames[1:] {
						w.heal(n)
					}
				})
				require.True(t, w.until(time.Hour, func() bool { return len(w.ended) == 1 }))
				w.pass(10 * time.Minute)
				breakers := func() map[string]ledger.Breaker {
					return at(w, func() map[string]ledger.Breaker { return mustLedger(w).Status.Breakers })
				}
				require.Empty(t, breakers(), "the trial closed it")
				calls := w.callCount()
				w.do(func() { w.ail("n0", 1) })
				w.pass(time.Minute)
				if window == 0 {
					require.Empty(t, breakers())
					require.Equal(t, calls+1, w.callCount())
					return
				}
				require.Equal(t, ledger.BreakerOpen, breakers()[ledger.ScopeCluster].State)
				require.Equal(t, calls, w.callCount(), "nothing is done before it is calm again")
				require.Equal(t, remediations.OutcomeRelapsed, remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])[0].Outcome)
				w.pass(30 * time.Minute)
				require.Equal(t, calls+1, w.callCount())
			})
		})
	}
}

// TestRelapseIsCountedBeforeItIsReported: the ledger cannot be saved for a moment, and the relapse
// is counted and reported once.
func TestRelapseIsCountedBeforeItIsReported(t *testing.T) {
	inWorld(t, relapsing(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		cure(t, w, 1)
		w.pass(20 * time.Minute)
		outcome := func() remediations.Outcome {
			return remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])[0].Outcome
		}
		w.do(func() { w.always["save"] = "lost"; w.ail("n0", 9) })
		w.pass(30 * time.Second)
		require.Equal(t, remediations.OutcomeRecovered, outcome(), "what is not counted is not told either")
		require.Empty(t, w.toldOf("RepairRelapsed"))
		w.do(func() { clear(w.always) })
		w.pass(time.Minute)
		require.Equal(t, remediations.OutcomeRelapsed, outcome())
		require.Len(t, w.toldOf("RepairRelapsed"), 1)
		require.Equal(t, 1, at(w, func() int { return mustLedger(w).Status.Exhausted["node-not-ready"] }))
	})
}

// TestMachineThatCameForAnotherDoesNotRelapse: the repair of a replacement machine starts its plan
// from the beginning.
func TestMachineThatCameForAnotherDoesNotRelapse(t *testing.T) {
	c := wholeConfig()
	c.Policies[0].RelapseWindow, c.Limits.RepairsPerNode = time.Hour, 9
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.do(func() { w.recycling = recycling{nodeGoes: 30 * time.Second, joins: 2 * time.Minute, oldName: true} })
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(2*time.Hour, func() bool { return len(w.ended) == 1 }))
		require.Equal(t, remediations.OutcomeRecovered, at(w, func() remediations.Outcome { return w.ended[0].Outcome }))
		w.pass(10 * time.Minute)
		w.do(func() { w.ail("n0", 1) })
		require.True(t, w.until(20*time.Minute, func() bool { return len(w.ended) == 2 }))
		require.Equal(t, []string{"reboot:1"}, at(w, func() []string { return w.ended[1].Steps.Texts() }))
	})
}

// twoRanOut creates a ledger after two exhausted repairs of the policy in a row. A third one stops
// the policy.
func (w *world) twoRanOut() {
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	l.Finished("node-not-ready", "r9997", remediations.OutcomeExhausted)
	l.Finished("node-not-ready", "r9998", remediations.OutcomeExhausted)
	w.ledger, w.ledgerRV = l.Encode(), 7
}

// TestRepairThatDidNothingDoesNotCountForItsPolicy: its end is not counted. Only the person's
// cancel is saved.
func TestRepairThatDidNothingDoesNotCountForItsPolicy(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.do(w.twoRanOut)
		w.start()
		w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); w.ail("n0", 9) })
		require.True(t, w.until(2*time.Minute, func() bool { return w.record("n0") != nil }))
		w.pass(time.Minute)
		before := at(w, func() int { return w.ledgerRV })
		w.do(func() { cancel(w) })
		w.pass(time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
		require.Empty(t, w.ended[0].Steps)
		require.Equal(t, 2, at(w, func() int { return mustLedger(w).Status.Exhausted["node-not-ready"] }))
		require.Equal(t, before+1, at(w, func() int { return w.ledgerRV }), "the cancel")
	})
}

// TestEndsCountThoughTheLedgerCouldNotBeSaved: a plan that ran out counts once, when the ledger can
// be saved again. A repair that ends between two attempts breaks the row.
func TestEndsCountThoughTheLedgerCouldNotBeSaved(t *testing.T) {
	row := func(w *world) int {
		return at(w, func() int { return mustLedger(w).Status.Exhausted["node-not-ready"] })
	}
	c := modelConfig()
	c.Policies[0].Plan[0].Attempts = 1
	inWorld(t, c, 10, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(20*time.Minute, func() bool { return len(w.calls) == 1 }))
		w.pass(9 * time.Minute)
		w.do(func() { w.faults["save"] = []string{"lost", "lost", "lost"} })
		w.pass(10 * time.Minute)
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
		require.Equal(t, 1, row(w))
	})
	inWorld(t, planned("drain"), 10, func(t *testing.T, w *world) {
		w.do(func() { w.machines["n0"].pods = podsOf{left: 5, blocked: true} })
		w.during(t, "drain")
		w.do(func() { // Ready, and its alert continues to fire: a dead node would lose nothing by the next step
			w.machines["n0"].broken, w.machines["n0"].sick = 9, 0
			w.report(w.machines["n0"])
		})
		deadline := w.recordOf("n0").Deadline
		w.pass(time.Until(deadline) - time.Second) // lost any earlier, it would interrupt the drain
		w.do(func() { w.always["load"], w.always["save"] = "lost", "lost" })
		w.pass(2 * time.Minute)
		require.Equal(t, remediations.PhaseActing, w.recordOf("n0").Phase, "its time is over, and nobody could count that")
		w.do(func() { clear(w.always) })
		w.pass(time.Minute)
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
		require.Equal(t, 1, row(w))
	})
	c = modelConfig()
	inWorld(t, c, 10, func(t *testing.T, w *world) {
		w.do(w.twoRanOut)
		w.start()
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(20*time.Minute, func() bool { return len(w.calls) == 1 }))
		w.do(func() { w.machines["n0"].silenced = true })
		w.pass(12 * time.Minute)
		require.Equal(t, remediations.PhasePending, w.recordOf("n0").Phase)
		require.Equal(t, 2, row(w))
		w.do(func() { w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID)) })
		w.pass(time.Minute)
		require.Zero(t, row(w))
	})
}
