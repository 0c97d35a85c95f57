package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/ledger"
)

// TestALedgerThatIsTheSameIsNotDecodedAgain, and yet what counts is what is in store: neither what was only noted here, nor what
// was in store before.
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
