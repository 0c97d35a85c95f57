// Package announce has the annotations and conditions that Drydock sets on a Node during a repair,
// so that other systems see the repair. The repair's record says which of them Drydock has set.
package announce

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations are the annotations, by the other system's name in the configuration, that keep that
// system away from a node under repair.
var Annotations = map[string][]string{
	"cluster-autoscaler": {"cluster-autoscaler.kubernetes.io/scale-down-disabled"},
	// The first annotation keeps Karpenter from consolidation, drift and similar disruptions of the
	// node. The second keeps Karpenter from repairing the node, from version 1.15 on. Both are
	// needed (kubernetes-sigs/karpenter pkg/apis/v1/labels.go).
	"karpenter": {"karpenter.sh/do-not-disrupt", doNotRepair},
}

const doNotRepair = "karpenter.sh/do-not-repair"

// Karpenter taints a node that it has chosen for a disruption within some seconds
// (kubernetes-sigs/karpenter pkg/controllers/disruption/controller.go). A call to a provider comes
// at most 10 s after its intent. This is half of that, so the wait does not make the intent too
// old.
const settling = 5 * time.Second

// Settling returns how long a repair must wait after it has set this annotation, before its first
// call. Karpenter reads the annotation only when it chooses a node for a disruption, perhaps just
// before. It then taints the node within this time, and the taint stops the call.
func Settling(n *corev1.Node, key string) time.Duration {
	if key == doNotRepair && n.Labels["karpenter.sh/nodepool"] != "" {
		return settling
	}
	return 0
}

// Value is the only value of these annotations that the other systems accept.
const Value = "true"
