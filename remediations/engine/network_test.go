package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

const cni = "kube-system/calico-node"

// loseNetwork makes the kubelet report that its machine has no network, and no other fault.
func (w *world) loseNetwork(name string) {
	w.machines[name].stuck = true // its alert fires, although the model has no fault for it
	w.edit(name, func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status = corev1.ConditionFalse
				c.Message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
			}
		}
	})
	w.witness(name)
}

// TestANodeWithoutItsNetworksDaemonSetIsNotRepaired: no reboot restores a deleted DaemonSet. A node
// whose pod of the DaemonSet crashes is repaired.
func TestANodeWithoutItsNetworksDaemonSetIsNotRepaired(t *testing.T) {
	for name, pod := range map[string]signs.Answer{"the DaemonSet is gone": signs.Unknown, "its pod crashes": signs.Ill} {
		repaired := pod == signs.Ill
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			c.Policies[0].Witness = &signs.Witness{Network: cni, Signs: []signs.Sign{{Kind: signs.NotReady, Network: cni}}}
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.witnesses = map[signs.Kind]Witness{signs.DaemonSetPod: word(func() signs.Answer { return pod })}
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.loseNetwork("n0"); w.post("n0", remediations.StatusFiring) })
				w.pass(2 * time.Minute)
				require.Equal(t, repaired, w.callCount() == 1)
				if r := at(w, func() *remediations.Record { return w.record("n0") }); !repaired {
					require.Equal(t, remediations.ReasonNotWitnessed, r.Hold.Reason)
					require.Contains(t, r.Hold.Message, "only the network is missing")
				}
			})
		})
		t.Run(name+" after the first step", func(t *testing.T) {
			c := modelConfig()
			c.Policies[0].Witness = &signs.Witness{Network: cni, Signs: []signs.Sign{{Kind: signs.Condition, Name: conditionBroken, Status: "True"}}}
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.witnesses = map[signs.Kind]Witness{signs.DaemonSetPod: word(func() signs.Answer { return pod })}
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.breakDown("n0", 1); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(2*time.Minute, func() bool { return len(w.calls) == 1 && w.machines["n0"].broken == 0 && w.machines["n0"].up }))
				w.do(func() { w.loseNetwork("n0") })
				w.pass(15 * time.Minute)
				require.Equal(t, repaired, w.callCount() == 2)
			})
		})
	}
}
