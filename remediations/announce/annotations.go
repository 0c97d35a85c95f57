// Package announce has the signs on a Node that show other systems a repair by Drydock: annotations
// that those systems read, and Node conditions. The record of a repair has what the repair has
// announced.
package announce

// Annotations are the annotations that make other systems leave a node alone, by their names in the
// configuration. They stand on a Node while it is under repair.
var Annotations = map[string][]string{
	"cluster-autoscaler": {"cluster-autoscaler.kubernetes.io/scale-down-disabled"},
	// The first keeps consolidation, drift and the like away, and the second Karpenter's node repair,
	// from 1.15 on: neither includes the other (kubernetes-sigs/karpenter pkg/apis/v1/labels.go).
	"karpenter": {"karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-repair"},
}

// Value is the value of each annotation: the only one that those systems accept.
const Value = "true"
