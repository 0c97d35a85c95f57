package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
)

// TestARebootThatLeavesTheMachineOffSaysSo: the cloud reports that the machine has been shut down
// since Drydock's own reboot. That holds the repair, and people see its cause. The control is a
// machine that was shut down before.
func TestARebootThatLeavesTheMachineOffSaysSo(t *testing.T) {
	const plain = "taint node.cloudprovider.kubernetes.io/shutdown set by the cloud controller manager: the machine is shut down"
	for name, c := range map[string]struct {
		before bool
		says   string
		calls  int
	}{
		"since the reboot": {false, plain + "; the taint came after Drydock's own reboot:1, which may have left the machine off: start the machine, or cancel the repair and replace the machine yourself", 1},
		"before":           {true, plain, 0},
	} {
		t.Run(name, func(t *testing.T) {
			off := func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: marks.ShutdownTaint}) }
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.nonsense = nil
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.mood.idle = true
					w.ail("n0", 9)
					if c.before {
						w.edit("n0", off)
					}
					w.post("n0", remediations.StatusFiring)
				})
				if !c.before {
					require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }))
					w.do(func() { w.edit("n0", off) })
				}
				w.pass(30 * time.Minute)
				require.Equal(t, c.calls, w.callCount())
				require.Equal(t, c.says, w.recordOf("n0").Hold.Message)
				told := w.toldOf("RepairHeld")
				require.NotEmpty(t, told)
				last := told[len(told)-1]
				require.Equal(t, "NodeLeaving: "+c.says, last.Note)
				require.True(t, last.Warning)
			})
		})
	}
}
