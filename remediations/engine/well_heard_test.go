package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestLeaderThatComesAfterTheDeadlineWaitsForTheWatchdog: a node is first observed to be healthy
// after its step's deadline. It counts as healthy only once the Watchdog has arrived again, as
// before that deadline.
func TestLeaderThatComesAfterTheDeadlineWaitsForTheWatchdog(t *testing.T) {
	for name, dies := range map[string]bool{"the source of alerts died": true, "the control": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(5*time.Minute, func() bool {
					return w.record("n0") != nil && w.record("n0").Phase == remediations.PhaseVerifying
				}))
				over := w.recordOf("n0").Deadline
				w.do(w.last().cancel)
				w.pass(time.Until(over) - 30*time.Second)
				w.do(func() { w.heal("n0") })
				w.pass(25 * time.Second)
				w.do(func() {
					if dies {
						w.killSource()
					}
				})
				w.pass(10 * time.Second)
				w.start()
				w.pass(80 * time.Second)
				require.Equal(t, dies, len(w.outcomes()) == 0)
			})
		})
	}
}
