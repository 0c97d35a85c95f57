package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestDeathOfTheAlertSourceDoesNotCountAsCure: while a repair waits for its proof, every alert
// vanishes, and the Watchdog with them.
func TestDeathOfTheAlertSourceDoesNotCountAsCure(t *testing.T) {
	for name, dies := range map[string]bool{"it dies": true, "it lives": false} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Policies[0].ProofFor = 10 * time.Second // shorter than three missed Watchdogs, which would hide the rest
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 1) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				require.True(t, w.until(time.Hour, func() bool { return w.machines["n0"].well() }), "the worst moment: only the alert is left")
				w.do(func() {
					if dies {
						w.killSource()
					}
				})
				w.pass(3 * time.Hour)
				if !dies {
					require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
					return
				}
				require.Empty(t, w.outcomes())
				require.Equal(t, 1, w.callCount(), "and nothing more is done for an alert that nobody confirms")
				require.Equal(t, remediations.PhasePending, w.recordOf("n0").Phase, "no phase outlives its deadline")
				w.do(w.reviveSource)
				w.pass(2 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeSelfRecovered}, w.outcomes(), "it is well once the source lives again, but nobody can say any more what cured it")
			})
		})
	}
}

// TestNodeThatGoesInTheMiddleFreesItsSlot: the Node is deleted, or deleted and registered again
// under its name, at each point of a repair.
func TestNodeThatGoesInTheMiddleFreesItsSlot(t *testing.T) {
	for name, again := range map[string]bool{"for good": false, "and comes again": true} {
		for when, at := range map[string]time.Duration{"while acting": 0, "while verifying": 5 * time.Second, "while well but for time": 90 * time.Second} {
			t.Run(name+" "+when, func(t *testing.T) {
				inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
					w.start()
					w.do(func() {
						w.mood.after = 3 * time.Second
						w.ail("n0", 1)
						w.ail("n1", 1)
					})
					require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
					first := w.callTo(0)
					w.pass(at)
					w.do(func() {
						w.leave(first)
						if again {
							w.join(first, "civo://"+first+"-again")
						}
					})
					require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 2 }), "the other node takes the slot")
					require.NotEqual(t, first, w.callTo(1))
					w.pass(10 * time.Minute)
					require.Equal(t, 2, w.callCount())
					require.Empty(t, w.slots(t))
				})
			})
		}
	}
}

// TestTwoEnginesAtOnce: only the resourceVersions and the ledger's compare-and-swap separate them.
func TestTwoEnginesAtOnce(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.start()
		w.do(func() {
			for _, n := range []string{"n0", "n1", "n2"} {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		w.pass(time.Hour)
		// Each takes the other's attempt for the attempt of a dead leader, and so may prevent the
		// call. That costs attempts, and never makes a call twice.
		require.Positive(t, w.callCount())
		require.Len(t, w.outcomes(), 3)
		require.Empty(t, w.slots(t))
	})
}

// TestLeaderThatSleptAfterItsIntentMakesNoCall: when it wakes, another replica leads and the intent
// is old.
func TestLeaderThatSleptAfterItsIntentMakesNoCall(t *testing.T) {
	for name, c := range map[string]struct {
		slept time.Duration
		first int
	}{
		"for half a minute": {30 * time.Second, 0},
		"for a moment":      {5 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() {
					w.mood.before = c.slept
					w.ail("n0", 1)
				})
				w.pass(time.Minute)
				require.Equal(t, c.first, w.callCount())
				w.do(func() { w.mood = providerMood{} })
				w.pass(10 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestLostWritesCountNothingTwice: a write that met a conflict, or whose answer was lost, is tried
// again. A repair that has not begun is not counted against its machine.
func TestLostWritesCountNothingTwice(t *testing.T) {
	for name, faults := range map[string]map[string][]string{
		"no fault":                            nil,
		"four conflicts on the Node":          {"write": {"conflict", "conflict", "conflict", "conflict"}},
		"four writes on the Node lost":        {"write": {"lost", "lost", "lost", "lost"}},
		"four conflicts on the ledger":        {"save": {"conflict", "conflict", "conflict", "conflict"}},
		"four writes of the ledger lost":      {"save": {"lost", "lost", "lost", "lost"}},
		"a ledger saved, the answer lost":     {"save": {"written"}},
		"the ledger cannot be read for a bit": {"load": {"lost", "lost"}, "save": {"conflict"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Limits.RepairsPerNode = 1
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
					w.lag = 3
					for op, f := range faults {
						w.faults[op] = f
					}
				})
				w.pass(10 * time.Minute)
				require.Equal(t, 1, w.callCount())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Len(t, at(w, func() []ledger.Begun { return mustLedger(w).Repairs["civo://m0"] }), 1)
			})
		})
	}
}

// TestIntentWhoseWriteHadNoAnswerIsNotCalled: the intent may be on the Node or not. It counts as
// issued, and the next attempt has an intent of its own.
func TestIntentWhoseWriteHadNoAnswerIsNotCalled(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			w.ail("n0", 1)
			w.post("n0", remediations.StatusFiring)
			w.faults["write"] = []string{"written"}
		})
		w.pass(5 * time.Minute)
		require.Zero(t, w.callCount())
		require.Equal(t, remediations.CallUnknown, w.recordOf("n0").Intent.Outcome)
		w.pass(10 * time.Minute)
		require.Equal(t, 1, w.callCount())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Len(t, remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])[0].Steps, 2)
	})
}

// TestAlertOfAPolicyThatWasRenamedIsAdoptedAgain: the Node has the alert under the policy's old
// name.
func TestAlertOfAPolicyThatWasRenamedIsAdoptedAgain(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() {
			w.ail("n0", 1)
			old := *w.config.Policies[0]
			old.Name = "the old name"
			a := w.config.NewAlert(&old, labelsOf("n0"), remediations.StatusFiring, time.Now(), time.Now())
			w.edit("n0", func(n *corev1.Node) { n.Annotations[a.Key()] = a.Encode() })
		})
		w.start()
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}
