package signs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// onlyNetwork is how a kubelet begins the message of Ready if the network is all that it misses. A message about more than one
// fault begins with a bracket.
const onlyNetwork = "container runtime network not ready: "

// networkConditions are the conditions about the network of a node alone: of Kubernetes, and of the EKS node monitoring agent.
var networkConditions = []string{string(corev1.NodeNetworkUnavailable), "NetworkingReady"}

// reads is the sign that must be read to judge this one on the Node; false: the Node shows all.
func (s Sign) reads(n *corev1.Node) (Sign, bool) {
	if !s.onNode() {
		return s, true
	}
	if s.Network == "" || !s.lacksNetwork(n) {
		return Sign{}, false
	}
	return Sign{Kind: DaemonSetPod, Name: s.Network}, true
}

// lacksNetwork says that the sign says Ill of the Node, and that the network is all that the Node lacks.
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

// withPod is what the Node says of the sign, in the light of what was read of the network's pod on it. Without that pod the Node
// cannot get its network back, whatever is done to the machine.
func (s Sign) withPod(pod, node Testimony) Testimony {
	if pod.Answer != Unknown || node.Answer != Ill {
		return node
	}
	return Testimony{Answer: Unknown, At: pod.At, Reason: NetworkMissing, Saw: node.Saw + ", and all that the node lacks is its network, which no repair of the node restores: " + pod.Saw}
}

// ToRead are the signs that must be read to judge those that are asked on the Node.
func ToRead(asked []Sign, n *corev1.Node) []Sign {
	var out []Sign
	for _, s := range asked {
		if needed, reads := s.reads(n); reads && !slices.Contains(out, needed) {
			out = append(out, needed)
		}
	}
	return out
}
