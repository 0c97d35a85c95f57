package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// unread is a provider whose reads fail at some of its calls, before or after its mayStill.
type unread struct {
	provider
	err   error
	times int
	asks  bool
	began *[]time.Time
}

func (u unread) Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	n := at(u.w, func() int { *u.began = append(*u.began, time.Now()); return len(*u.began) })
	if n > u.times {
		return u.provider.Act(ctx, m, mayStill)
	}
	if u.asks {
		if err := mayStill(); err != nil {
			return remediations.CallRefused, err
		}
	}
	return remediations.CallRefused, fmt.Errorf("reading node %s: %w", m.Node, u.err)
}

// TestWhatCouldNotBeReadIsReadAgain: the read is repeated within the same attempt, as long as
// nothing was done and the intent is young.
func TestWhatCouldNotBeReadIsReadAgain(t *testing.T) {
	no := errors.New("no such machine")
	for name, c := range map[string]struct {
		err   error
		times int
		asks  bool
		// calls are the provider's calls during the first attempt. first is the outcome of that
		// attempt.
		calls int
		first remediations.CallOutcome
	}{
		"two reads fail":            {ErrPassing, 2, false, 3, remediations.CallAccepted},
		"all reads fail":            {ErrPassing, 1000, false, 10, ""},
		"it will not pass":          {no, 1, false, 1, ""},
		"it can never be done":      {ErrUnable, 1, false, 1, remediations.CallRefused},
		"mayStill was asked before": {ErrPassing, 1, true, 1, ""},
		"it may be done later":      {ErrLater, 1, true, 1, ""},
		"what left was refused":     {no, 1, true, 1, remediations.CallRefused},
		"the account is refused":    {fmt.Errorf("%w: %w", ErrPassing, ErrAccount), 1, false, 1, ""},
		"or at the call":            {ErrAccount, 1, true, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				i := w.start()
				w.pass(16 * time.Second)
				var began []time.Time
				i.engine.Actuators[""]["reboot"] = unread{provider{i, "reboot"}, c.err, c.times, c.asks, &began}
				w.do(func() { w.ail("n0", 9) })
				var r *remediations.Record
				require.True(t, w.until(2*time.Minute, func() bool {
					r = w.record("n0")
					return r != nil && r.Intent != nil && (r.Intent.Outcome != "" || r.Withheld())
				}))
				intent := r.Intent
				require.Equal(t, c.first, intent.Outcome)
				require.Equal(t, c.first == "", r.Withheld(), "what never left is given back, and what may be done later")
				require.Equal(t, 1, r.Step.Attempt)
				require.InDelta(t, c.calls, len(began), 1, "%v", began)
				if c.calls < 5 {
					require.Len(t, began, c.calls)
				}
				require.Less(t, began[len(began)-1].Sub(intent.At), IntentGood+time.Second)
				if c.first == remediations.CallAccepted {
					require.Len(t, w.calls, 1)
				} else {
					require.Empty(t, w.calls)
				}
			})
		})
	}
}

// TestWhatCannotBeReadForHoursCostsNoAttempt: each try is withheld, reports which provider could
// not read its data, frees its slot and is followed by a pause. After five tries the repair is held
// as ProviderUnreachable, with longer pauses. When the read succeeds again, the plan's only attempt
// is still available.
func TestWhatCannotBeReadForHoursCostsNoAttempt(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.mood.unread = true; w.ail("n0", 1) })
		held := func() bool { return w.record("n0") != nil && w.record("n0").Withheld() }
		require.True(t, w.until(2*time.Minute, held))
		w.pass(time.Second)
		r := w.recordOf("n0")
		require.Equal(t, remediations.ReasonCallWithheld, r.Hold.Reason)
		require.Equal(t, "nothing was done: Drydock could not read what it needs for the step reboot: reading the machine of node n0: it could not be read just now", r.Hold.Message)
		require.Empty(t, r.Done)
		require.Empty(t, w.slots(t))
		require.Empty(t, at(w, func() map[string]string { return w.book().Status.Stopped }))
		size := len(r.Encode())

		began := time.Now()
		w.pass(5 * time.Hour)
		tries := len(w.toldOf("RepairStepIssued"))
		require.LessOrEqual(t, tries, int(time.Since(began)/(5*time.Minute))+5, "five minutes are between two tries")
		require.Greater(t, tries, 50, "it is tried again and again")
		require.Len(t, heldEvents(w, remediations.ReasonProviderUnreachable), 1, "people are told")
		require.Zero(t, w.callCount())
		require.Empty(t, w.outcomes())
		require.Len(t, w.toldOf("RepairStarted"), 1)
		require.True(t, w.until(6*time.Minute, held))
		hold := w.recordOf("n0").Hold
		require.Equal(t, remediations.ReasonProviderUnreachable, hold.Reason)
		require.Contains(t, hold.Message, "calls in a row for the step reboot failed; the last one: Drydock could not read what it needs for the step reboot: reading the machine of node n0")
		require.LessOrEqual(t, len(w.recordOf("n0").Encode()), size+120, "the record does not grow with each try")
		require.Len(t, at(w, func() []ledger.Begun { return w.book().Repairs[w.machines["n0"].providerID] }), 1, "it is one repair for limits.repairsPerNode")

		w.do(func() { w.mood = providerMood{} })
		w.pass(15 * time.Minute)
		require.Equal(t, 1, w.callCount())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, []string{"reboot:1"}, w.ended[0].Steps.Texts())
	})
}

// TestAReplicaThatStopsReadsNothingAgain: another replica already leads.
func TestAReplicaThatStopsReadsNothingAgain(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(16 * time.Second)
		var began []time.Time
		i.engine.Actuators[""]["reboot"] = unread{provider{i, "reboot"}, ErrPassing, 1000, false, &began}
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(2*time.Minute, func() bool { return len(began) == 2 }))
		w.do(func() { i.cancel() })
		w.pass(time.Minute)
		require.Len(t, began, 2)
	})
}
