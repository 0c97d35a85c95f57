package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestAnUncordonWhileTheMachineRestartsIsNotAPersonsWord: a driver's installer uncordons the node
// after each boot, and Kubernetes does not record who uncordons a node. So the repair waits for its
// proof. Without the proof a person must act, because pods may be back.
func TestAnUncordonWhileTheMachineRestartsIsNotAPersonsWord(t *testing.T) {
	for name, c := range map[string]struct {
		reboots    int // until the machine is healthy
		uncordoned bool
		calls      []string
		outcome    remediations.Outcome
	}{
		"the reboot cures the machine":              {reboots: 1, uncordoned: true, calls: []string{"reboot"}, outcome: remediations.OutcomeRecovered},
		"the reboot cures nothing":                  {reboots: 9, uncordoned: true, calls: []string{"reboot"}, outcome: remediations.OutcomeExhausted},
		"the reboot cures nothing, and no uncordon": {reboots: 9, calls: []string{"reboot", "restart-kubelet"}, outcome: remediations.OutcomeExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			config := planned("drain", "reboot", "restart-kubelet")
			config.Policies[0].CordonExhausted = true
			inWorld(t, config, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", c.reboots); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(20*time.Minute, func() bool {
					r := w.record("n0")
					return r != nil && r.Phase == remediations.PhaseVerifying && r.Step.Name == "reboot"
				}))
				w.do(func() {
					if c.uncordoned {
						w.machines["n0"].cordonedBy = ""
						w.edit("n0", func(n *corev1.Node) { n.Spec.Unschedulable = false })
					}
				})
				w.pass(40 * time.Minute)
				require.Equal(t, c.calls, w.callsOf(), "no other step begins after the uncordon")
				require.Equal(t, []remediations.Outcome{c.outcome}, w.outcomes())
				require.Empty(t, w.ended[0].By)
				if c.outcome == remediations.OutcomeRecovered {
					return
				}
				require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
				require.Equal(t, !c.uncordoned, w.nodeOf("n0").Spec.Unschedulable, "Drydock does not cordon the node again")
				if c.uncordoned {
					require.Contains(t, w.ended[0].Why, "the node was uncordoned while Drydock verified reboot:1")
				}
			})
		})
	}
}
