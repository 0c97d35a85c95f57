package signs

import corev1 "k8s.io/api/core/v1"

// The reasons that distinguish the answers of one kind of sign, for metrics.
const (
	NodeReady       = "NodeReady"
	NodeNotReady    = "NodeNotReady"
	NodeUnknown     = "NodeStatusUnknown"
	NetworkMissing  = "NetworkMissing"
	GPUCountMatch   = "GPUCountMatch"
	GPUCountUnknown = "GPUCountUnknown"
	// GPUCountMismatch: the node offers some of its GPUs. NoAllocatableGPU: it offers none.
	GPUCountMismatch = "GPUCountMismatch"
	NoAllocatableGPU = "NoAllocatableGPU"
	NonGPUNode       = "NonGPUNode"
	PodMissing       = "PodMissing"
	DaemonSetMissing = "DaemonSetMissing"
)

// Reasons is the closed list, for the documentation. If a sign's answer needs no reason, the answer
// itself is the reason.
var Reasons = []string{
	string(Ill), string(Well), string(Unknown), NodeReady, NodeNotReady, NodeUnknown, NetworkMissing, GPUCountMatch, GPUCountMismatch, NoAllocatableGPU, NonGPUNode,
	GPUCountUnknown, PodMissing, DaemonSetMissing,
}

// Said is the answer of one sign.
type Said struct {
	Sign Sign
	Testimony
}

// Label names the sign in metrics: by its kind, or for a condition by its type.
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
