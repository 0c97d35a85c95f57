package signs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The message of the Ready condition begins with this if the network is the only fault. A message
// about several faults begins with a bracket.
const onlyNetwork = "container runtime network not ready: "

// The conditions of Kubernetes and of the EKS node monitoring agent that only concern a node's
// network.
var networkConditions = []string{string(corev1.NodeNetworkUnavailable), "NetworkingReady"}

// reads returns what must be read outside of the Node for s: s itself, or the pod of the network's
// DaemonSet. ok is false if the Node alone is enough.
func (s Sign) reads(n *corev1.Node) (Sign, bool) {
	if !s.onNode() {
		return s, true
	}
	if s.Network == "" || !s.lacksNetwork(n) {
		return Sign{}, false
	}
	return Sign{Kind: DaemonSetPod, Name: s.Network}, true
}

// The sign is Ill only because the node's network is missing.
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

// pod is the answer about the network's pod on that node. If the Node is Ill and no such pod runs
// there, the result is Unknown: no repair of the machine can bring the network back.
func (s Sign) withPod(pod, node Testimony) Testimony {
	if pod.Answer != Unknown || node.Answer != Ill {
		return node
	}
	return Testimony{Answer: Unknown, At: pod.At, Reason: NetworkMissing, Saw: node.Saw + ", but only the network is missing, and no repair of the node restores it: " + pod.Saw}
}

// ToRead returns the signs that must be read outside of the Node, each once.
func ToRead(asked []Sign, n *corev1.Node) []Sign {
	var out []Sign
	for _, s := range asked {
		if needed, reads := s.reads(n); reads && !slices.Contains(out, needed) {
			out = append(out, needed)
		}
	}
	return out
}
