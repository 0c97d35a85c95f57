package engine

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestABusyFleetDelaysNoProof: a pass between a question to Alertmanager and its answer does not
// begin the proof again. The repair is Pending, because its alert was silenced after the first
// reboot, and then the node heals.
func TestABusyFleetDelaysNoProof(t *testing.T) {
	for name, every := range map[string]time.Duration{"a quiet fleet": 0, "a Node changes again and again": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.do(func() { w.machines["n0"].silenced = true })
				require.True(t, w.until(12*time.Minute, func() bool { return w.record("n0").Phase == remediations.PhasePending }))
				w.do(func() { w.lookTakes = 2 * time.Second; w.heal("n0") })
				for end := time.Now().Add(10 * time.Minute); w.recordOf("n0") != nil && time.Now().Before(end); {
					if every == 0 {
						w.pass(time.Second)
						continue
					}
					w.do(func() {
						w.edit("n1", func(n *corev1.Node) {
							n.Annotations[remediations.PauseKey] = "true " + strconv.FormatInt(time.Now().UnixNano(), 10)
						})
					})
					w.pass(every)
				}
				require.Nil(t, w.recordOf("n0"), "the node is well, and no alert fires")
				require.Len(t, w.outcomes(), 1)
			})
		})
	}
}
