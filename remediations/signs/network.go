package signs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// onlyNetwork is the beginning of the message of the Ready condition if the network is the only
// fault that the kubelet reports. A message about several faults begins with a bracket.
const onlyNetwork = "container runtime network not ready: "

// networkConditions are the conditions that only concern a node's network: the condition of
// Kubernetes, and that of the EKS node monitoring agent.
var networkConditions = []string{string(corev1.NodeNetworkUnavailable), "NetworkingReady"}

// reads returns the sign that Drydock must read outside of the Node to evaluate s: s itself, or the
// pod of the network's DaemonSet. ok is false if the Node alone is enough.
func (s Sign) reads(n *corev1.Node) (Sign, bool) {
	if !s.onNode() {
		return s, true
	}
	if s.Network == "" || !s.lacksNetwork(n) {
		return Sign{}, false
	}
	return Sign{Kind: DaemonSetPod, Name: s.Network}, true
}

// lacksNetwork reports whether the sign is Ill on the Node only because the node's network is
// missing.
func (s Sign) lacksNetwork(n *corev1.Node) bool {
	switch s.Kind {
	case NotReady:
		c := conditionOf(n, corev1.NodeReady)
		return c != nil && c.Status == corev1.ConditionFalse && strings.HasPrefix(c.Message, onlyNetwork)
	case Condition:
		return slices.Contains(networkConditions, s.Name) && s.ask(n, time.Time{}).Answer == Ill
	case StaleLease, MissingGPUs, DaemonSetPod, NotRunning:
	}
	return false
}

// withPod returns the answer of the sign. node is the answer according to the Node, and pod is the
// answer about the network's pod on that node. If the Node is Ill and no such pod runs there, the
// result is Unknown: no repair of the machine can bring the network back.
func (s Sign) withPod(pod, node Testimony) Testimony {
	if pod.Answer != Unknown || node.Answer != Ill {
		return node
	}
	return Testimony{Answer: Unknown, At: pod.At, Reason: NetworkMissing, Saw: node.Saw + ", but only the network is missing, and no repair of the node restores it: " + pod.Saw}
}

// ToRead returns the signs that Drydock must read outside of the Node to evaluate the asked signs.
// Each is there once.
func ToRead(asked []Sign, n *corev1.Node) []Sign {
	var out []Sign
	for _, s := range asked {
		if needed, reads := s.reads(n); reads && !slices.Contains(out, needed) {
			out = append(out, needed)
		}
	}
	return out
}
