package signs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// onlyNetwork is how a kubelet's message about Ready begins if only the network is missing. A
// message about several faults begins with a bracket.
const onlyNetwork = "container runtime network not ready: "

// networkConditions are the conditions that only concern a node's network: that of Kubernetes, and
// that of the EKS node monitoring agent.
var networkConditions = []string{string(corev1.NodeNetworkUnavailable), "NetworkingReady"}

// reads returns the sign that must be read, besides the Node, to evaluate this sign. ok is false if
// the Node shows everything.
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

// withPod returns the Node's answer for the sign, corrected by what was read about the network's
// pod on the node. If no such pod runs there, the node cannot get its network back by any repair of
// the machine.
func (s Sign) withPod(pod, node Testimony) Testimony {
	if pod.Answer != Unknown || node.Answer != Ill {
		return node
	}
	return Testimony{Answer: Unknown, At: pod.At, Reason: NetworkMissing, Saw: node.Saw + ", but only the network is missing, and no repair of the node restores it: " + pod.Saw}
}

// ToRead returns the signs that must be read, besides the Node, to evaluate the asked signs.
func ToRead(asked []Sign, n *corev1.Node) []Sign {
	var out []Sign
	for _, s := range asked {
		if needed, reads := s.reads(n); reads && !slices.Contains(out, needed) {
			out = append(out, needed)
		}
	}
	return out
}
