package signs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// noNetwork is a kubelet's message if only the network is missing. twoFaults is its message if more
// is missing.
const (
	noNetwork = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	twoFaults = "[" + noNetwork + ", PLEG is not healthy: pleg was last seen active 4m ago]"
)

// TestAMissingNetworkDoesNotBlameANodeWithoutTheDaemonSetsPod: if no DaemonSet schedules a network
// pod there, no repair of the node creates the pod. A node with the pod, or with another fault, is
// ill.
func TestAMissingNetworkDoesNotBlameANodeWithoutTheDaemonSetsPod(t *testing.T) {
	const cni = "kube-system/calico-node"
	ready := signs.Sign{Kind: signs.NotReady, Network: cni}
	condition := func(kind, status string) signs.Sign {
		return signs.Sign{Kind: signs.Condition, Name: kind, Status: status, Network: cni}
	}
	gone := signs.Testimony{Answer: signs.Unknown, Saw: "DaemonSet kube-system/calico-node does not exist", At: noon}
	crashing := signs.Testimony{Answer: signs.Ill, Saw: "pod kube-system/a is not Ready", At: noon}
	there := signs.Testimony{Answer: signs.Well, Saw: "pod kube-system/a is Ready", At: noon}
	for name, c := range map[string]struct {
		sign    signs.Sign
		has     corev1.NodeCondition
		pod     signs.Testimony
		reads   bool
		ill     bool
		unread  bool
		because string
	}{
		"not Ready, the DaemonSet is gone":             {ready, corev1.NodeCondition{Type: "Ready", Status: "False", Message: noNetwork}, gone, true, false, false, "DaemonSet kube-system/calico-node does not exist"},
		"not Ready, the pod crashes":                   {ready, corev1.NodeCondition{Type: "Ready", Status: "False", Message: noNetwork}, crashing, true, true, false, ""},
		"not Ready, the pod is Ready":                  {ready, corev1.NodeCondition{Type: "Ready", Status: "False", Message: noNetwork}, there, true, true, false, ""},
		"not Ready, the pod was not looked at":         {ready, corev1.NodeCondition{Type: "Ready", Status: "False", Message: noNetwork}, signs.Testimony{}, true, false, true, ""},
		"not Ready for a second fault as well":         {ready, corev1.NodeCondition{Type: "Ready", Status: "False", Message: twoFaults}, gone, false, true, false, ""},
		"not Ready for another fault":                  {ready, corev1.NodeCondition{Type: "Ready", Status: "False", Message: "PLEG is not healthy"}, gone, false, true, false, ""},
		"the kubelet is silent":                        {ready, corev1.NodeCondition{Type: "Ready", Status: "Unknown", Message: noNetwork}, gone, false, true, false, ""},
		"no network is configured":                     {signs.Sign{Kind: signs.NotReady}, corev1.NodeCondition{Type: "Ready", Status: "False", Message: noNetwork}, gone, false, true, false, ""},
		"NetworkUnavailable, the DaemonSet is gone":    {condition("NetworkUnavailable", "True"), corev1.NodeCondition{Type: "NetworkUnavailable", Status: "True"}, gone, true, false, false, "does not exist"},
		"NetworkingReady False, the DaemonSet is gone": {condition("NetworkingReady", "False"), corev1.NodeCondition{Type: "NetworkingReady", Status: "False"}, gone, true, false, false, "does not exist"},
		"NetworkingReady False, the pod crashes":       {condition("NetworkingReady", "False"), corev1.NodeCondition{Type: "NetworkingReady", Status: "False"}, crashing, true, true, false, ""},
		"another condition":                            {condition("KernelReady", "False"), corev1.NodeCondition{Type: "KernelReady", Status: "False"}, gone, false, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := bare("n1")
			n.Status.Conditions = []corev1.NodeCondition{c.has}
			pod := signs.Sign{Kind: signs.DaemonSetPod, Name: cni}
			want := []signs.Sign(nil)
			if c.reads {
				want = []signs.Sign{pod}
			}
			require.Equal(t, want, signs.ToRead([]signs.Sign{c.sign}, n))
			w := signs.Weigh([]signs.Sign{c.sign}, n, map[signs.Sign]signs.Testimony{pod: c.pod}, noon.Add(-time.Minute), noon)
			require.Equal(t, []bool{c.ill, c.unread}, []bool{w.Ill, w.Unread})
			require.False(t, w.Well, "a node without its network is not well")
			if c.because != "" {
				require.Contains(t, w.Saw[0], "only the network is missing")
				require.Contains(t, w.Saw[0], c.because)
				require.Equal(t, noon, w.Oldest, "so it is looked at again")
			}
		})
	}
}
