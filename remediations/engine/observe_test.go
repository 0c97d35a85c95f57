package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestObservedRepairsLeaveEvidence: two unhealthy nodes, one place. The first recovers by itself,
// the second does not. Each is in its history, was reported once, and is counted. A policy that
// enforces is the control: it repairs both, and observes nothing.
func TestObservedRepairsLeaveEvidence(t *testing.T) {
	for name, mode := range map[string]remediations.Mode{"observe": remediations.ModeObserve, "enforce": remediations.ModeEnforce} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Policies[0].Mode = mode
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 1) })
				w.pass(time.Minute)
				w.do(func() { w.ail("n1", 1) })
				w.pass(time.Minute)
				w.do(func() { w.heal("n0") }) // in enforce mode it is already healthy
				w.pass(20 * time.Minute)
				first, second := remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey]), remediations.DecodeHistory(w.nodeOf("n1").Annotations[remediations.HistoryKey])
				require.Len(t, first, 1)
				require.Len(t, second, 1)
				if mode == remediations.ModeEnforce {
					require.Equal(t, 2, w.callCount())
					require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes())
					require.Empty(t, w.toldOf("RepairObserved"))
					return
				}
				require.Zero(t, w.callCount())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeObserved, remediations.OutcomeObserved}, w.outcomes())
				require.True(t, first[0].Would.Unnecessary(), first[0].Why)
				require.Zero(t, second[0].Would.WellAt, second[0].Why)
				require.WithinDuration(t, second[0].Would.At.Add(10*time.Minute), second[0].Ended, time.Minute, "its step's wait")
				require.False(t, second[0].Would.At.Before(first[0].Ended), "it waited for the place")
				require.Len(t, w.toldOf("RepairObserved"), 2)
				w.pass(2 * time.Hour)
				require.Len(t, w.toldOf("RepairObserved"), 2, "of an alert that fires on it is said once")
				w.do(func() { w.heal("n1") })
				w.pass(2 * time.Minute)
				w.do(func() { w.ail("n1", 1) })
				w.pass(2 * time.Minute)
				require.Equal(t, remediations.ReasonObserving, w.recordOf("n1").Hold.Reason, "and again when it has ended and fires again")
			})
		})
	}
}

// TestWhatWasObservedHoldsNoRepair: the policy observes, then enforces, while the alert continues
// to fire: it repairs. If its earlier repair did something, the cooldown holds it.
func TestWhatWasObservedHoldsNoRepair(t *testing.T) {
	for name, first := range map[string]remediations.Mode{"observed": remediations.ModeObserve, "repaired": remediations.ModeEnforce} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Policies[0].Mode, conf.Policies[0].Cooldown = first, 6*time.Hour
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 1) })
				w.pass(20 * time.Minute)
				require.Len(t, w.outcomes(), 1)
				calls := w.callCount()
				if first == remediations.ModeEnforce {
					w.do(func() { w.ail("n0", 1) })
				}
				enforcing, p := *w.config, *w.config.Policies[0]
				p.Mode, enforcing.Policies = remediations.ModeEnforce, []*remediations.Policy{&p}
				w.restart(&enforcing)
				w.pass(20 * time.Minute)
				if first == remediations.ModeEnforce {
					require.Equal(t, remediations.ReasonCooldown, w.recordOf("n0").Hold.Reason)
					require.Equal(t, calls, w.callCount())
					return
				}
				require.Equal(t, 1, w.callCount())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeObserved, remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestRepairThatObserveModeStopsFreesItsPlace: a repair that acted waits for its next step, which
// the mode holds back. After that step's wait it blocks no other node. In enforce mode the next
// step follows, and the other node waits for its end.
func TestRepairThatObserveModeStopsFreesItsPlace(t *testing.T) {
	for name, mode := range map[string]remediations.Mode{"observe": remediations.ModeObserve, "enforce": remediations.ModeEnforce} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 99) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				next, p := *w.config, *w.config.Policies[0]
				p.Mode, next.Policies = mode, []*remediations.Policy{&p}
				w.restart(&next)
				require.True(t, w.until(12*time.Minute, func() bool {
					r := w.record("n0")
					return r.Hold != nil && r.Hold.Reason == remediations.ReasonObserving || len(w.calls) == 2
				}))
				w.do(func() { w.ail("n1", 99) })
				w.pass(5 * time.Minute)
				require.Nil(t, w.recordOf("n1"), "the first one has the place")
				w.pass(7 * time.Minute)
				if mode == remediations.ModeEnforce {
					require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
					require.Equal(t, 3, w.callCount())
					return
				}
				require.Equal(t, 1, w.callCount())
				require.Equal(t, remediations.ReasonObserving, w.recordOf("n1").Hold.Reason)
				require.Equal(t, []string{"reboot:1"}, w.recordOf("n0").Done.Texts(), "what was done stays on record")
			})
		})
	}
}
