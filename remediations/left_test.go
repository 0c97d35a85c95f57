package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAClockThatIsAheadEndsNoHold: what an ended repair left stays as long as the person's key is on the Node, whatever a
// clock says that no lease agrees with.
func TestAClockThatIsAheadEndsNoHold(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		back       bool
	}{
		"a pause that is over by this clock":     {key: PauseKey, value: noon.Add(-time.Hour).Format(time.RFC3339)},
		"break-glass that is over by this clock": {key: BreakGlassKey, value: "why"},
		"neither":                                {back: true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := &scene{Alerts: []sceneAlert{}, Node: sceneNode{Ready: "True", Cordoned: true}}
			sc.Ledger.GlassFor = "2h"
			s := sc.state(t)
			if c.key != "" {
				s.Node.Annotations[c.key] = c.value
			}
			s.Ledger.Status.Glass[s.Node.Name] = Glass{Since: noon.Add(-2 * time.Hour), Why: c.value}
			s.Heartbeats = nil
			s.Journal.History = []Entry{{ID: "abc234", Ended: noon.Add(-time.Hour), Left: []Undo{{Kind: UndoCordon, At: noon.Add(-2 * time.Hour)}}}}
			require.Equal(t, c.back, Decide(s, noon).Uncordon)
		})
	}
}
