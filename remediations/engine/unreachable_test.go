package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// heldEvents are the Events about holds with the reason.
func heldEvents(w *world, reason remediations.Reason) (out []Event) {
	for _, e := range w.toldOf("RepairHeld") {
		if len(e.Note) > len(reason) && e.Note[:len(reason)+1] == string(reason)+":" {
			out = append(out, e)
		}
	}
	return out
}

// TestOneMachinesAnswersStopNoOthersRepair: this holds for any error, and for hours of it. The
// machine itself loses no attempt and no later step of its plan.
func TestOneMachinesAnswersStopNoOthersRepair(t *testing.T) {
	for name, err := range map[string]error{
		"the account is refused": ErrAccount, "nothing is read": ErrPassing, "not now": ErrLater, "it says no before the call": errors.New("no such machine"),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.odd = map[string]error{"n0": fmt.Errorf("the BMC of n0: %w", err)}
					w.ail("n0", 1)
					w.ail("n1", 1)
					w.ail("n2", 1)
				})
				w.pass(2 * time.Hour)
				require.Empty(t, at(w, func() map[string]string { return w.book().Status.Stopped }))
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes())
				r := w.recordOf("n0")
				require.Equal(t, remediations.PhasePending, r.Phase)
				require.Empty(t, r.Done)
				require.Equal(t, "reboot", r.Step.Name)
				require.Equal(t, remediations.ReasonProviderUnreachable, r.Hold.Reason)
				require.Contains(t, r.Hold.Message, "the BMC of n0")
				require.NotEmpty(t, heldEvents(w, remediations.ReasonProviderUnreachable))
				require.Empty(t, w.slots(t))

				w.do(func() { w.odd = nil })
				w.pass(20 * time.Minute)
				require.Len(t, w.outcomes(), 3)
				require.Equal(t, []string{"reboot:1"}, w.ended[2].Steps.Texts())
			})
		})
	}
}

// TestAMachineThatCannotBeReachedIsNotReplaced: the reboot is held for a day, and the repair then
// ends. The plan continues only if the step allows it.
func TestAMachineThatCannotBeReachedIsNotReplaced(t *testing.T) {
	for name, goesOn := range map[string]bool{"hold": false, "continue": true} {
		for how, act := range map[string]bool{"calls": true, "questions": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				c := wholeConfig()
				c.Policies[0].Plan[0].ContinueUnreachable = goesOn
				inWorld(t, c, 6, func(t *testing.T, w *world) {
					w.start()
					w.pass(16 * time.Second)
					w.do(func() {
						if act {
							w.odd = map[string]error{"n0": ofMachine{ErrPassing}}
						} else {
							w.mood.trouble, w.mood.unreached = "the BMC does not answer", true
						}
						w.ail("n0", 1)
					})
					if goesOn {
						require.True(t, w.until(40*time.Minute, func() bool {
							r := w.record("n0")
							return r != nil && r.Step.Name == "drain"
						}))
						require.Equal(t, "reboot", w.recordOf("n0").Passed[0].Name)
						return
					}
					w.pass(23 * time.Hour)
					require.Zero(t, w.callCount())
					require.Equal(t, "reboot", w.recordOf("n0").Step.Name)
					require.Equal(t, remediations.ReasonProviderUnreachable, w.recordOf("n0").Hold.Reason)
					require.False(t, w.nodeOf("n0").Spec.Unschedulable)
					require.True(t, w.until(2*time.Hour, func() bool { return len(w.ended) > 0 }))
					require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
					require.Empty(t, w.ended[0].Steps)
					require.Zero(t, w.callCount())
				})
			})
		}
	}
}

// TestACallThatMayBeMadeLaterIsMadeLater: the provider did nothing and reports that, for example
// while the machine starts.
func TestACallThatMayBeMadeLaterIsMadeLater(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.mood.later = true; w.ail("n0", 1) })
		require.True(t, w.until(2*time.Minute, func() bool { return w.record("n0") != nil && w.record("n0").Withheld() }))
		w.do(func() { w.mood = providerMood{} })
		w.pass(10 * time.Minute)
		require.Equal(t, 1, w.callCount())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, []string{"reboot:1"}, w.ended[0].Steps.Texts())
	})
}
