package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestWhatCouldOnlyBeRefusedCostsNoAttempt: the provider is asked about the machine first, and
// again after a while.
func TestWhatCouldOnlyBeRefusedCostsNoAttempt(t *testing.T) {
	for name, fleetwide := range map[string]bool{"one machine": false, "all machines": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.nonsense = nil
					w.mood.trouble, w.mood.fleetwide = "the provider has two instances of that name", fleetwide
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(time.Hour)
				require.Zero(t, w.callCount())
				require.Empty(t, w.slots(t))
				require.Empty(t, at(w, func() map[string][]ledger.Begun { return w.book().Repairs }))
				if fleetwide {
					require.Nil(t, w.recordOf("n0"), "the fleet's trouble is no write on a Node")
					require.Contains(t, at(w, func() string { return w.book().Status.Holds[remediations.ReasonProviderAbsent] }), "two instances")
				} else {
					require.Contains(t, w.recordOf("n0").Hold.Message, "two instances")
				}
				require.Equal(t, 1, w.heldAs(remediations.ReasonProviderAbsent))
				w.do(func() { w.mood = providerMood{} })
				w.pass(10 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Equal(t, []string{"reboot:1"}, w.ended[0].Steps.Texts())
			})
		})
	}
}

// TestWhatWouldBeRefusedIsOneLine: the log has one line, although the provider is asked again and
// again. Another reason has a line of its own.
func TestWhatWouldBeRefusedIsOneLine(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		lines := logOf(w)
		why := func() (out []string) {
			for _, l := range lines() {
				if l["msg"] == "the provider would refuse the step" {
					require.Equal(t, "n0", l["node"], l)
					require.Equal(t, "reboot", l["step"], l)
					said, _ := l["why"].(string)
					out = append(out, said)
				}
			}
			return out
		}
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.mood.trouble = "two instances have that name"; w.ail("n0", 1) })
		w.pass(time.Hour)
		require.Equal(t, []string{"two instances have that name"}, why())
		w.do(func() { w.mood.trouble = "the instance is being deleted" })
		w.pass(time.Hour)
		require.Equal(t, []string{"two instances have that name", "the instance is being deleted"}, why())
		w.do(func() { w.mood = providerMood{} })
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes(), "the control")
		require.Len(t, why(), 2)
	})
}

// TestProviderThatSaysNothingBeforehandHoldsTheRepair: the repair is held until the provider
// answers.
func TestProviderThatSaysNothingBeforehandHoldsTheRepair(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.mood.survey = time.Hour; w.ail("n0", 1) })
		w.pass(20 * time.Minute)
		require.Zero(t, w.callCount())
		w.do(func() { w.mood = providerMood{} })
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}

// TestAccountThatIsRefusedStopsThePolicy: no call for any machine would succeed. So no call is made
// until a person has corrected the account and released the policy.
func TestAccountThatIsRefusedStopsThePolicy(t *testing.T) {
	conf := modelConfig()
	conf.Policies[0].Plan[0].Attempts = 3
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.mood.account = true; w.ail("n0", 1); w.ail("n1", 1) })
		w.pass(30 * time.Second)
		w.restart(w.config) // and no restart forgets it
		w.pass(time.Hour)
		require.Zero(t, w.callCount())
		require.Len(t, w.toldOf("PolicyStopped"), 1)
		require.Contains(t, w.toldOf("PolicyStopped")[0].Note, "the key was revoked")
		require.Contains(t, at(w, func() string { return w.book().Status.Stopped["node-not-ready"] }), "the key was revoked")
		require.Equal(t, remediations.PhasePending, w.recordOf("n0").Phase)
		require.Empty(t, w.slots(t))
		w.do(func() { w.mood = providerMood{} })
		w.pass(time.Hour)
		require.Zero(t, w.callCount(), "nobody has said that it is mended")
		w.do(func() { w.edit("n1", edit(remediations.ResetKey, "true")) })
		w.pass(20 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes())
		require.NotContains(t, w.nodeOf("n1").Annotations, remediations.ResetKey)
	})
}

// TestLateAnswerIsRecorded: the attempt counted as possibly done, and then its outcome is known.
func TestLateAnswerIsRecorded(t *testing.T) {
	for name, late := range map[string]bool{"it comes late": true, "it never comes": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() {
					w.mood = providerMood{after: 90 * time.Second, late: late}
					w.machines["n0"].bootTakes = 5 * time.Minute
					w.ail("n0", 1)
				})
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.pass(75 * time.Second)
				require.Equal(t, remediations.CallUnknown, w.recordOf("n0").Intent.Outcome)
				deadline := w.recordOf("n0").Deadline
				w.pass(30 * time.Second)
				require.Equal(t, late, w.recordOf("n0").Intent.Outcome == remediations.CallAccepted)
				require.Equal(t, deadline, w.recordOf("n0").Deadline)
				w.pass(10 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestLateAnswerToAnotherAttemptIsNotTaken: a late answer changes nothing if its attempt has ended
// or its node is unknown.
func TestLateAnswerToAnotherAttemptIsNotTaken(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		first := w.start()
		w.do(func() { w.mood.cut = true; w.ail("n0", 9) })
		require.True(t, w.until(15*time.Minute, func() bool { return len(w.calls) == 2 }))
		w.pass(time.Second)
		r := w.recordOf("n0")
		first.engine.Late("n0", at(w, func() string { return w.calls[0].intent }), remediations.CallRefused, errors.New("no such instance"))
		first.engine.Late("n5", "r0000-0-1", remediations.CallRefused, errors.New("no such instance"))
		w.pass(time.Minute)
		require.Equal(t, r, w.recordOf("n0"))
	})
}
