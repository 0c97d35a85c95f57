package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestACureWhoseLeaseCannotBeReadIsHeldAsBlind: the node is healthy, its alert has ended, and
// Drydock has no permission to read leases. The hold is not AlertResolved: the hold, the status and
// the metric name the lease. The repair ends as recovered when the lease can be read again.
func TestACureWhoseLeaseCannotBeReadIsHeldAsBlind(t *testing.T) {
	for name, c := range map[string]struct {
		lose   []string
		status string
	}{
		"the node's lease":         {[]string{"lease"}, "a node's lease has been unreadable since "},
		"no lease can be read":     {[]string{"lease", "leases", "heartbeats"}, "a node's lease has been unreadable since "},
		"no lease can be listed":   {[]string{"leases", "heartbeats"}, ""},
		"the control: all is well": {},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.nonsense = nil
				i := w.start()
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.do(func() {
					for _, op := range c.lose {
						w.always[op] = "lost"
					}
				})
				w.pass(20 * time.Minute) // the step's wait has ended
				if c.status == "" {
					require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes(), "the node's own lease was read")
					return
				}
				r := w.recordOf("n0")
				require.Equal(t, remediations.PhasePending, r.Phase)
				require.Equal(t, remediations.ReasonBlind, r.Hold.Reason)
				require.Contains(t, r.Hold.Message, "its lease cannot be read (")
				require.Equal(t, 1, w.heldAs(remediations.ReasonBlind), "told once")
				require.Zero(t, w.heldAs(remediations.ReasonAlertResolved))
				require.Contains(t, at(w, func() string { return w.book().Status.Blind }), c.status)
				require.True(t, i.blindBy(blindLeases))
				require.Equal(t, 1, w.callCount())

				w.do(func() { clear(w.always) })
				w.pass(3 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeSelfRecovered}, w.outcomes(), "this world's kubelets do not say since when they are Ready")
				require.Empty(t, at(w, func() string { return w.book().Status.Blind }))
				require.False(t, i.blindBy(blindLeases))
			})
		})
	}
}

// TestAnUnreadableLeaseBlindsOnlyWhileARepairNeedsIt: a cancel ends that repair.
func TestAnUnreadableLeaseBlindsOnlyWhileARepairNeedsIt(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		w.do(func() { w.always["lease"] = "lost" })
		w.pass(5 * time.Minute)
		require.True(t, i.blindBy(blindLeases), "the control")
		w.do(func() { w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID)) })
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
		require.False(t, i.blindBy(blindLeases))
		require.Empty(t, at(w, func() string { return w.book().Status.Blind }))
	})
}

// TestLeasesThatCannotBeListedAreInTheStatus, which the runbook names.
func TestLeasesThatCannotBeListedAreInTheStatus(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(time.Minute)
		require.Empty(t, at(w, func() string { return w.book().Status.Blind }), "the control")
		w.do(func() { w.always["heartbeats"] = "lost"; w.ail("n0", 1) })
		w.pass(5 * time.Minute)
		require.True(t, i.blindBy(blindLeases))
		require.Contains(t, at(w, func() string { return w.book().Status.Blind }), "Drydock has not been able to list the nodes' leases since ")
	})
}
