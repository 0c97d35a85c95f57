// Package announce has the annotations and conditions that Drydock sets on a Node during a repair,
// so that other systems see the repair. The repair's record says which of them Drydock has set.
package announce

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations has the annotation keys that keep another system away from a node. The map's key is
// the system's name in the configuration. Drydock sets the annotations while it repairs the node.
var Annotations = map[string][]string{
	"cluster-autoscaler": {"cluster-autoscaler.kubernetes.io/scale-down-disabled"},
	// The first annotation stops Karpenter's consolidation, drift and similar disruptions. The second
	// stops its node repair, from version 1.15 on. Both are needed (kubernetes-sigs/karpenter
	// pkg/apis/v1/labels.go).
	"karpenter": {"karpenter.sh/do-not-disrupt", doNotRepair},
}

const doNotRepair = "karpenter.sh/do-not-repair"

// settling is how long Karpenter may take to taint a node that it has chosen for a disruption. It
// takes at most some seconds (kubernetes-sigs/karpenter pkg/controllers/disruption/controller.go).
// A call to a provider comes at most twice this time after its intent.
const settling = 5 * time.Second

// Settling returns how long a repair must wait between setting the annotation and its first call.
// Karpenter reads the annotation when it chooses a node, but not again when it acts. If it chose
// the node just before Drydock set the annotation, it sets its own taint within this time. The
// taint then stops the call.
func Settling(n *corev1.Node, key string) time.Duration {
	if key == doNotRepair && n.Labels["karpenter.sh/nodepool"] != "" {
		return settling
	}
	return 0
}

// Value is the value of each annotation. The other systems accept no other value.
const Value = "true"
