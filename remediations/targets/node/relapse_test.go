package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAnAlertCameBackAtTheFirstTimeAfterTheCure: a time before the cure belongs to the alert that
// was cured, and is not the time at which the alert returned.
func TestAnAlertCameBackAtTheFirstTimeAfterTheCure(t *testing.T) {
	const window = time.Hour
	before := func(d time.Duration) time.Time { return scene.Noon.Add(-d) }
	cured := before(2 * time.Hour)
	for name, c := range map[string]struct {
		received, starts time.Time
		relapse          bool
	}{
		"it came back within the window":                                {received: before(90 * time.Minute), starts: before(90 * time.Minute), relapse: true},
		"it came back within the window, and began before the cure":     {received: before(90 * time.Minute), starts: before(3 * time.Hour), relapse: true},
		"it came back after the window":                                 {received: before(time.Minute), starts: before(time.Minute)},
		"it came back after the window, and began before the cure":      {received: before(time.Minute), starts: before(3 * time.Hour)},
		"it came back after the window, and was received before":        {received: before(3 * time.Hour), starts: before(time.Minute)},
		"it came back after the window, and began as the cure was seen": {received: before(time.Minute), starts: cured},
		"nothing says that it came back":                                {received: before(3 * time.Hour), starts: before(3 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			p := &Policy{Name: "p", RelapseWindow: window}
			s.Ledger.Cures = map[string][]ledger.Cure{ledger.Machine(s.Node): {{Repair: "r1", Policy: "p", At: cured}}}
			relapse := node.Relapse(s, p, &Alert{ReceivedAt: c.received, StartsAt: c.starts}, scene.Noon)
			require.Equal(t, c.relapse, relapse != nil)
		})
	}
}
