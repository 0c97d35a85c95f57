package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/engine"
)

// OutOfService is the taint that says that a machine is off for good: volumes are detached and pods deleted without
// waiting for its kubelet. On a machine that still runs it loses data.
func OutOfService(at time.Time) corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: at}}
}

// taintsAfter are the Node's taints after the change; all others stay as they were read. Where somebody has set that one
// already theirs stays. What is taken off is told by its time alone: managedFields cannot say whose a taint is, since all
// taints are one field to them, owned by whoever changed any of them last, such as the controller that marks the node as
// not ready. But only who sets a taint gives it a time, and kubectl gives none.
func taintsAfter(n *corev1.Node, c engine.NodeChange) []corev1.Taint {
	taints := slices.Clone(n.Spec.Taints)
	if c.InService != nil {
		taints = slices.DeleteFunc(taints, func(t corev1.Taint) bool { return setAt(t, corev1.TaintNodeOutOfService, *c.InService) })
	}
	if c.OutOfService != nil {
		t := OutOfService(*c.OutOfService)
		if !slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			taints = append(taints, t)
		}
	}
	return taints
}

// setAt compares whole seconds, which is all that the API server keeps.
func setAt(t corev1.Taint, key string, at time.Time) bool {
	return t.Key == key && t.TimeAdded != nil && t.TimeAdded.Unix() == at.Unix()
}
