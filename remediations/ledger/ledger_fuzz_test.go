package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/ledger"
)

// FuzzDecodeLedger: a decoded ledger is encoded to the same data, and no arrival makes a ledger
// unreadable.
func FuzzDecodeLedger(f *testing.F) {
	f.Add("1", `[{"node":"n1","repair":"r1","attempt":"r1-0-1","since":"2026-01-01T00:00:00Z"}]`, `{"m":[{"repair":"r1","at":"2026-01-01T00:00:00Z"}]}`, `{"breakers":{"cluster":{"state":"open"}}}`, "[]", "")
	f.Add("1", "null", "null", "{}", "null", "2026-01-01T00:00:00Z")
	f.Add("1", "[]", "{}", `{"selfTest":{"state":"ok","since":"2026-01-01T00:00:00Z"}}`, "[]", "0000-01-01T00:00:00+23:59")
	f.Fuzz(func(t *testing.T, v, slots, repairs, status, orphans, arrival string) {
		data := map[string]string{ledger.KeyVersion: v, ledger.KeySlots: slots, ledger.KeyRepairs: repairs, ledger.KeyOrphans: orphans, ledger.KeyStatus: status}
		_, without := ledger.Decode(data)
		data[ledger.KeyArrival] = arrival
		l, err := ledger.Decode(data)
		require.Equal(t, without == nil, err == nil, "an arrival holds nothing")
		if err != nil {
			return
		}
		again, err := ledger.Decode(l.Encode())
		require.NoError(t, err)
		require.Equal(t, l.Encode(), again.Encode())
		require.Equal(t, l.Encode(), l.Clone().Encode())
	})
}
