package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestRequestedRebootNeedsNoAlert: a healthy node is rebooted because a person requested it, then
// proven, and then left alone.
func TestRequestedRebootNeedsNoAlert(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.edit("n0", edit(remediations.RequestKey, "reboot")) })
		w.pass(10 * time.Minute)
		require.Equal(t, 1, w.callCount())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, "remediation/reboot", w.ended[0].Request)
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.RequestKey)
		require.Empty(t, w.slots(t))
	})
}

// TestCancelledRepairStaysCancelled: the alert continues to fire, and no repair begins until the
// alert has ended and fires again.
func TestCancelledRepairStaysCancelled(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 2) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		w.pass(time.Minute)
		w.do(func() { cancel(w) })
		w.pass(26 * time.Hour)
		require.Equal(t, 1, w.callCount(), "not even after the day at which a held repair ends")
		require.Equal(t, remediations.ByPerson, w.ended[0].By)
		require.Empty(t, w.slots(t))
		require.Equal(t, remediations.ReasonPaused, w.recordOf("n0").Hold.Reason)

		w.do(func() { w.heal("n0") })
		w.pass(10 * time.Minute)
		w.do(func() { w.ail("n0", 1) })
		w.pass(20 * time.Minute)
		require.Greater(t, w.callCount(), 1, "the alert ended and fires again")
	})
}

// TestAPostedEndDoesNotUndoACancel: any client with the receiver's token can post that the alert
// has ended and fires again. The history no longer has the repair, so that only the alert shows the
// cancel.
func TestAPostedEndDoesNotUndoACancel(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		w.pass(time.Minute)
		w.do(func() { cancel(w) })
		w.pass(10 * time.Minute)
		w.do(func() { w.edit("n0", func(n *corev1.Node) { delete(n.Annotations, remediations.HistoryKey) }) })
		for range 3 {
			w.do(func() { w.post("n0", remediations.StatusResolved) })
			w.pass(20 * time.Second)
			w.do(func() { w.post("n0", remediations.StatusFiring) })
			w.pass(10 * time.Minute)
		}
		require.Equal(t, 1, w.callCount())
		w.do(func() { w.heal("n0") })
		w.pass(10 * time.Minute)
		w.do(func() { w.ail("n0", 1) })
		w.pass(10 * time.Minute)
		require.Equal(t, 2, w.callCount(), "the control: Alertmanager says that the alert ended, and it fires again")
	})
}

// TestAnswersToPeopleAreEvents: each refused request is answered, and answered again when it is
// repeated.
func TestAnswersToPeopleAreEvents(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		told := func(reason string) int {
			return at(w, func() int {
				n := 0
				for _, e := range w.told {
					if e.Reason == reason {
						n++
					}
				}
				return n
			})
		}
		for i := range 2 {
			w.do(func() { w.edit("n0", edit(remediations.RequestKey, "do it")) })
			w.pass(30 * time.Second)
			require.Equal(t, i+1, told("AnnotationInvalid"))
		}
		w.do(func() { w.edit("n0", edit(remediations.PauseKey, "till noon")) })
		w.pass(10 * time.Minute)
		require.Equal(t, 3, told("AnnotationInvalid"), "one that stays is told once")
	})
}

// TestSilenceOfARepair: the silence is created when the call is accepted, is recorded, holds
// nothing, and ends with the repair.
func TestSilenceOfARepair(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		quiet := &silencer{}
		w.silencer = quiet
		w.start()
		w.do(func() { w.ail("n0", 2) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		w.pass(time.Second)
		require.Equal(t, "s1", w.recordOf("n0").Silence)
		require.Equal(t, map[string]string{"node": "n0"}, quiet.made["s1"])
		require.True(t, w.until(15*time.Minute, func() bool { return len(w.calls) == 2 }), "the second attempt is not held by it")
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, []string{"s2"}, quiet.expired)
	})
}

// TestRepairWithoutASilenceEndsNone: if Alertmanager created no silence, there is none to end.
func TestRepairWithoutASilenceEndsNone(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		quiet := &silencer{refuses: true}
		w.silencer = quiet
		w.start()
		w.do(func() { w.ail("n0", 1) })
		require.True(t, w.until(20*time.Minute, func() bool { return len(w.ended) == 1 }))
		w.pass(time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Empty(t, quiet.expired)
	})
}

// TestSilenceThatCannotBeEndedIsLogged: the silence expires by itself, and no repair waits for
// that.
func TestSilenceThatCannotBeEndedIsLogged(t *testing.T) {
	for fails, want := range map[error]int{nil: 0, errLost: 1} {
		var lines []string
		o := logged(&lines)
		o.CallTimeout, o.Silencer = time.Second, &silencer{keeps: fails}
		(&pass{Engine: &Engine{Options: o}, ctx: t.Context()}).expireSilence("s1")
		require.Len(t, lines, want)
	}
}

// TestOnlyAPlanThatRanOutIsAWarning: among the Events about an end, only this one is a warning.
func TestOnlyAPlanThatRanOutIsAWarning(t *testing.T) {
	for outcome, reboots := range map[remediations.Outcome]int{remediations.OutcomeRecovered: 1, remediations.OutcomeExhausted: 9} {
		inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.ail("n0", reboots) })
			require.True(t, w.until(40*time.Minute, func() bool { return len(w.ended) == 1 }))
			w.pass(time.Minute)
			told := at(w, func() []Event {
				return slices.DeleteFunc(slices.Clone(w.told), func(e Event) bool { return e.Reason != "Repair"+string(outcome) })
			})
			require.Len(t, told, 1)
			require.Equal(t, outcome == remediations.OutcomeExhausted, told[0].Warning)
		})
	}
}

// silencer remembers the silences that it was asked for.
type silencer struct {
	made    map[string]map[string]string
	expired []string
	refuses bool
	keeps   error // why no silence can be ended
}

func (s *silencer) Silence(_ context.Context, labels map[string]string, _ time.Time, _ string) (string, error) {
	if s.refuses {
		return "", errors.New("no")
	}
	if s.made == nil {
		s.made = map[string]map[string]string{}
	}
	id := fmt.Sprintf("s%d", len(s.made)+1)
	s.made[id] = labels
	return id, nil
}

func (s *silencer) Expire(_ context.Context, id string) error {
	s.expired = append(s.expired, id)
	return s.keeps
}
