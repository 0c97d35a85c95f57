package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestARecordNamesNoGuardThatHoldsItNoMore: a hold that concerns all nodes is not written on Nodes.
// The exception is a Node whose record has an older hold of that node alone, which it replaces.
func TestARecordNamesNoGuardThatHoldsItNoMore(t *testing.T) {
	soon := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	pending := &Record{ID: "aaaaaa", Phase: PhasePending}
	heldBy := func(r Reason) *Record { return &Record{ID: "aaaaaa", Phase: PhasePending, Hold: &Hold{Reason: r}} }
	for name, c := range map[string]struct {
		on   *Record
		now  Reason
		want bool
	}{
		"nothing is on record":            {nil, ReasonAtLimit, false},
		"no hold is on record":            {pending, ReasonAtLimit, false},
		"the node's own guard is over":    {heldBy(ReasonSilenced), ReasonAtLimit, true},
		"it was written already":          {heldBy(ReasonAtLimit), ReasonAtLimit, false},
		"another one of the fleet's":      {heldBy(ReasonFleetUnhealthy), ReasonAtLimit, false},
		"the same guard, for all nodes":   {heldBy(ReasonAlertUnconfirmed), ReasonAlertUnconfirmed, false},
		"the node's own, the same as ago": {heldBy(ReasonSilenced), ReasonSilenced, false},
		"the node's own, after another":   {heldBy(ReasonSilenced), ReasonCooldown, true},
		"the node's own, until a time":    {&Record{ID: "aaaaaa", Phase: PhasePending, Hold: &Hold{Reason: ReasonTooYoung, Until: &soon}}, ReasonFleetUnhealthy, false},
	} {
		fleetwide := c.now.Fleetwide() || c.now == ReasonAlertUnconfirmed
		require.Equal(t, c.want, c.on.Holds(pending, &Hold{Reason: c.now}, fleetwide), name)
	}
}
