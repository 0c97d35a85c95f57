package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestWhoIsNotInChargeOfTheClusterChangesNothing: it writes no Node and no ledger, and makes no
// call. It reports why, and begins once it is in charge.
func TestWhoIsNotInChargeOfTheClusterChangesNothing(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() {
			w.charge = `another Drydock is in charge of the cluster: "a/drydock" holds Lease kube-system/drydock`
			w.ail("n0", 1)
			w.post("n0", remediations.StatusFiring)
		})
		i := w.start()
		w.pass(5 * time.Minute)
		w.do(func() {
			require.Nil(t, w.record("n0"))
			require.Empty(t, w.ledger, "none is made")
			require.Empty(t, w.calls)
		})
		require.True(t, i.blindBy(blindCharge))
		told := w.toldOf("NotInCharge")
		require.Len(t, told, 1)
		require.Contains(t, told[0].Note, `"a/drydock" holds Lease`)
		w.do(func() { w.charge = "" })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }), "the control")
		require.False(t, i.blindBy(blindCharge))

		var before, after *ledger.Ledger
		w.do(func() { before = w.book(); w.charge = "another Drydock is in charge of the cluster" })
		w.pass(5 * time.Minute)
		w.do(func() { after = w.book() })
		require.Equal(t, "another Drydock is in charge of the cluster", after.Status.Aside)
		after.Status = before.Status
		require.Equal(t, before, after, "the status alone says so")
		w.do(func() { w.charge = "" })
		w.pass(time.Minute)
		require.Empty(t, at(w, func() string { return w.book().Status.Aside + w.book().Status.Blind }))
	})
}

// TestAReplicaThatLostTheClusterMakesNoCall: although the intent is written, no call is made, and
// nothing more is written.
func TestAReplicaThatLostTheClusterMakesNoCall(t *testing.T) {
	for name, lost := range map[string]string{"it is lost": "another Drydock is in charge of the cluster", "the control": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(time.Minute)
				w.do(func() {
					w.lastLook = func() { w.charge = lost }
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(2 * time.Minute)
				require.Equal(t, lost == "", w.callCount() > 0)
			})
		})
	}
}
