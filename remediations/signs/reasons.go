package signs

import corev1 "k8s.io/api/core/v1"

// The reasons that tell the answers of one kind of sign apart, for metrics.
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

// Reasons is the closed list, for the documentation. A sign whose answer tells all has its answer as the reason.
var Reasons = []string{
	string(Ill), string(Well), string(Unknown), NodeReady, NodeNotReady, NodeUnknown, NetworkMissing, GPUCountMatch, GPUCountMismatch, NoAllocatableGPU, NonGPUNode,
	GPUCountUnknown, PodMissing, DaemonSetMissing,
}

// Said is what one sign said.
type Said struct {
	Sign Sign
	Testimony
}

// Label names the sign in metrics: its kind, and of a condition its type.
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
