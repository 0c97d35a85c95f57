package signs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// onlyNetwork begins a kubelet's message about Ready if only the network is missing. A message
// about several faults begins with a bracket.
const onlyNetwork = "container runtime network not ready: "

// networkConditions are the conditions about a node's network alone: of Kubernetes, and of the EKS
// node monitoring agent.
var networkConditions = []string{string(corev1.NodeNetworkUnavailable), "NetworkingReady"}

// reads returns the sign that must be read to judge this one on the Node; false: the Node shows
// everything.
func (s Sign) reads(n *corev1.Node) (Sign, bool) {
	if !s.onNode() {
		return s, true
	}
	if s.Network == "" || !s.lacksNetwork(n) {
		return Sign{}, false
	}
	return Sign{Kind: DaemonSetPod, Name: s.Network}, true
}

// lacksNetwork reports whether the sign is Ill on the Node, and the Node lacks only its network.
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

// withPod returns the Node's answer for the sign, corrected by what was read of the network's pod
// on it. Without that pod the Node cannot get its network back, whatever is done to the machine.
func (s Sign) withPod(pod, node Testimony) Testimony {
	if pod.Answer != Unknown || node.Answer != Ill {
		return node
	}
	return Testimony{Answer: Unknown, At: pod.At, Reason: NetworkMissing, Saw: node.Saw + ", and all that the node lacks is its network, which no repair of the node restores: " + pod.Saw}
}

// ToRead returns the signs that must be read to judge the asked signs on the Node.
func ToRead(asked []Sign, n *corev1.Node) []Sign {
	var out []Sign
	for _, s := range asked {
		if needed, reads := s.reads(n); reads && !slices.Contains(out, needed) {
			out = append(out, needed)
		}
	}
	return out
}
