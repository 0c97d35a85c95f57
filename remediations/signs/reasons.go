package signs

import corev1 "k8s.io/api/core/v1"

// These reasons distinguish the answers of one kind of sign, for metrics.
const (
	NodeReady       = "NodeReady"
	NodeNotReady    = "NodeNotReady"
	NodeUnknown     = "NodeStatusUnknown"
	NetworkMissing  = "NetworkMissing"
	GPUCountMatch   = "GPUCountMatch"
	GPUCountUnknown = "GPUCountUnknown"
	// The node offers only some of its GPUs, or none of them.
	GPUCountMismatch = "GPUCountMismatch"
	NoAllocatableGPU = "NoAllocatableGPU"
	NonGPUNode       = "NonGPUNode"
	PodMissing       = "PodMissing"
	DaemonSetMissing = "DaemonSetMissing"
)

// Reasons lists all values of Testimony.Reason. If the answer needs no further reason, it is the
// reason itself.
var Reasons = []string{
	string(Ill), string(Well), string(Unknown), NodeReady, NodeNotReady, NodeUnknown, NetworkMissing, GPUCountMatch, GPUCountMismatch, NoAllocatableGPU, NonGPUNode,
	GPUCountUnknown, PodMissing, DaemonSetMissing,
}

// Said is a sign with its answer.
type Said struct {
	Sign Sign
	Testimony
}

// Label returns the sign's name in metrics.
func (s Sign) Label() string {
	if s.Kind == Condition {
		return s.Name
	}
	return string(s.Kind)
}

func (t Testimony) because(reason string) Testimony {
	t.Reason = reason
	return t
}

func readyReason(n *corev1.Node) string {
	c := conditionOf(n, corev1.NodeReady)
	switch {
	case c == nil || c.Status == corev1.ConditionUnknown:
		return NodeUnknown
	case c.Status == corev1.ConditionTrue:
		return NodeReady
	}
	return NodeNotReady
}
