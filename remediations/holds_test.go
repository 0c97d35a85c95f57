package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestARecordNamesNoGuardThatHoldsItNoMore: what holds all nodes alike is written on none of them, but where a record names a guard of
// its node's own, once.
func TestARecordNamesNoGuardThatHoldsItNoMore(t *testing.T) {
	soon := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	pending := &Record{ID: "aaaaaa", Phase: Pending}
	heldBy := func(r Reason) *Record { return &Record{ID: "aaaaaa", Phase: Pending, Hold: &Hold{Reason: r}} }
	for name, c := range map[string]struct {
		on   *Record
		now  Reason
		want bool
	}{
		"nothing is on record":            {nil, AtLimit, false},
		"no hold is on record":            {pending, AtLimit, false},
		"the node's own guard is over":    {heldBy(Silenced), AtLimit, true},
		"it was written already":          {heldBy(AtLimit), AtLimit, false},
		"another one of the fleet's":      {heldBy(FleetUnhealthy), AtLimit, false},
		"the same guard, for all nodes":   {heldBy(AlertUnconfirmed), AlertUnconfirmed, false},
		"the node's own, the same as ago": {heldBy(Silenced), Silenced, false},
		"the node's own, after another":   {heldBy(Silenced), Cooldown, true},
		"the node's own, until a time":    {&Record{ID: "aaaaaa", Phase: Pending, Hold: &Hold{Reason: TooYoung, Until: &soon}}, FleetUnhealthy, false},
	} {
		fleetwide := c.now.Fleetwide() || c.now == AlertUnconfirmed
		require.Equal(t, c.want, c.on.Holds(pending, &Hold{Reason: c.now}, fleetwide), name)
	}
}
