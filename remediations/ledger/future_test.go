package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestTimesFromTheFutureAreClamped: this covers each time in every part of the ledger. A time
// within the tolerance of clocks stays.
func TestTimesFromTheFutureAreClamped(t *testing.T) {
	at := func(when time.Time) *ledger.Ledger {
		begun := []ledger.Begun{{Repair: "r1", At: when}}
		return &ledger.Ledger{
			Slots: []ledger.Slot{{Node: "n1", Since: when}}, Repairs: map[string][]ledger.Begun{"m1": begun}, Moves: map[string][]ledger.Begun{"a": {begun[0]}}, Wide: []ledger.Begun{begun[0]},
			Ends:    map[string][]ledger.End{"m1": {{Repair: "r1", At: when, Seen: when}}},
			Orphans: []ledger.Orphan{{Node: "n1", Record: Record{Began: when, Since: when, Intent: &Intent{At: when}}}},
			Status: ledger.Status{
				Breakers:   map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerOpen, Since: when, Quiet: when, Seen: when}},
				BreakGlass: map[string]ledger.BreakGlass{"n1": {Since: when}}, SelfTest: selftest.Result{Since: when},
			},
		}
	}
	for _, fine := range []time.Time{scene.Noon, scene.Noon.Add(-time.Hour), scene.Noon.Add(30 * time.Second)} {
		l := at(fine)
		require.False(t, l.Ahead(scene.Noon))
		require.False(t, l.Clamp(scene.Noon))
		require.Equal(t, at(fine), l)
	}
	l := at(scene.Noon.Add(720 * time.Hour))
	require.True(t, l.Ahead(scene.Noon))
	require.Equal(t, at(scene.Noon.Add(720*time.Hour)), l, "to ask changes nothing")
	require.True(t, l.Clamp(scene.Noon))
	require.Equal(t, at(scene.Noon), l)
}
