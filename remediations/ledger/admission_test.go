package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOneMoreAdmissionRequestIsNotWorthAWrite: only the first request, and a request after some
// time, are written. Otherwise any client of the webhook's port could cause many writes.
func TestOneMoreAdmissionRequestIsNotWorthAWrite(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	none, first := &Admission{Serving: at}, &Admission{Serving: at, Last: at.Add(time.Hour)}
	require.True(t, first.Same(&Admission{Serving: at, Last: first.Last.Add(9 * time.Minute)}))
	require.True(t, (*Admission)(nil).Same(nil))
	for name, other := range map[string]*Admission{
		"later":           {Serving: at, Last: first.Last.Add(10 * time.Minute)},
		"another replica": {Serving: at.Add(time.Second), Last: first.Last},
		"none has come":   none,
		"no webhook":      nil,
	} {
		require.False(t, first.Same(other), name)
	}
}
