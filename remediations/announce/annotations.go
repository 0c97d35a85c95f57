// Package announce has the signs on a Node that show other systems a repair by Drydock: annotations
// that those systems read, and Node conditions. The record of a repair has what the repair has
// announced.
package announce

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations are the annotations that make other systems leave a node alone, by their names in the
// configuration. They stand on a Node while it is under repair.
var Annotations = map[string][]string{
	"cluster-autoscaler": {"cluster-autoscaler.kubernetes.io/scale-down-disabled"},
	// The first keeps consolidation, drift and the like away, and the second Karpenter's node repair,
	// from 1.15 on: neither includes the other (kubernetes-sigs/karpenter pkg/apis/v1/labels.go).
	"karpenter": {"karpenter.sh/do-not-disrupt", doNotRepair},
}

const doNotRepair = "karpenter.sh/do-not-repair"

// settling is half of the time that a call may be made after its intent. Karpenter takes
// milliseconds to seconds from its choice of a node to its mark: it reads what it has in memory,
// and simulates where the pods would go (kubernetes-sigs/karpenter
// pkg/controllers/disruption/controller.go).
const settling = 5 * time.Second

// Settling is how long a repair waits between the annotation and its first call. Karpenter reads
// the annotation when it chooses a node, and not again when it acts. A node that it chose just
// before the annotation came has Karpenter's own mark after this time, and the mark holds the call.
func Settling(n *corev1.Node, key string) time.Duration {
	if key == doNotRepair && n.Labels["karpenter.sh/nodepool"] != "" {
		return settling
	}
	return 0
}

// Value is the value of each annotation: the only one that those systems accept.
const Value = "true"
