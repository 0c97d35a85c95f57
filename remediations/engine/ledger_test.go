package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestALedgerThatIsTheSameIsNotDecodedAgain: a load still returns exactly the stored ledger,
// without unsaved changes and without an older version.
func TestALedgerThatIsTheSameIsNotDecodedAgain(t *testing.T) {
	t.Parallel()
	e, ctx := settled(t, 10, 0)
	store := e.Store.(*still)
	load := func() *ledger.Ledger {
		e.ledger = nil
		e.loadLedger(ctx)
		require.NotNil(t, e.ledger, "%v", e.ledgerErr)
		is, err := ledger.Decode(store.ledger)
		require.NoError(t, err)
		require.Equal(t, is, e.ledger)
		return e.decoded
	}
	first := load()
	require.Same(t, first, load(), "nothing has changed")

	e.ledger.Repairs["uid-1"] = []ledger.Begun{{Repair: "r0001", At: time.Now()}}
	e.ledger.Status.Blind = "noted, not saved"
	require.Same(t, first, load())

	other := e.ledger.Clone()
	other.Stop("node-not-ready", "somebody else saved this")
	store.ledger = other.Encode()
	require.NotSame(t, first, load(), "somebody else saved")

	own := e.ledger.Clone()
	own.Stop("node-not-ready", "saved by this one")
	require.NoError(t, e.saveLedger(ctx, own, e.ledgerAt))
	load()
	require.Equal(t, "saved by this one", e.ledger.Status.Stopped["node-not-ready"])
	require.NotSame(t, own, e.ledger)
}

// TestAFullLedgerForgetsOldCuresAndTheRepairBegins: the ConfigMap is as long as the API server
// accepts, so there is no room for a slot.
func TestAFullLedgerForgetsOldCuresAndTheRepairBegins(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		reboot := remediations.StepRef{Name: "reboot", Attempt: 1}
		var full *ledger.Ledger
		w.do(func() {
			full = w.book()
			e := &remediations.Entry{ID: "r1", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Ended: remediations.Instant(time.Now()), Steps: remediations.Attempts{reboot.Issued()}, Last: &reboot}
			for _, more := range []int{1000, 100, 10, 1} {
				for l := full; !tooLong(l.Encode()); {
					full, l = l, l.Clone()
					for range more {
						l.Cured(fmt.Sprintf("machine-%d", len(l.Cures)), e, nil)
					}
				}
			}
			w.ledger = full.Encode()
			w.ledgerRV++
			w.ail("n0", 1)
			w.post("n0", remediations.StatusFiring)
		})
		w.pass(20 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		is := at(w, w.book)
		require.Less(t, len(is.Cures), len(full.Cures), "there was no room without that")
		require.Greater(t, len(is.Cures), len(full.Cures)/2)
	})
}
