// Package announce knows how others are told on a Node that Drydock repairs it: by annotations that their systems read, and by Node
// conditions. What a repair has announced is in its record.
package announce

// Annotations are those by which other systems are asked to leave a node alone, by the names that the configuration has for them. They
// stand on a Node while it is under repair.
var Annotations = map[string]string{
	"cluster-autoscaler": "cluster-autoscaler.kubernetes.io/scale-down-disabled",
	"karpenter":          "karpenter.sh/do-not-disrupt",
}

// Value is that of each annotation: the only one that those systems take.
const Value = "true"
