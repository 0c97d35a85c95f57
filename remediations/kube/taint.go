package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// The taint declares a machine permanently off: Kubernetes detaches its volumes, and deletes its
// pods without waiting for its kubelet. If the machine still runs, data may be lost.
func outOfService(at time.Time) corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: at}}
}

// taintsAfter keeps all other taints as they were read, also an out-of-service taint of another
// writer.
func taintsAfter(n *corev1.Node, c engine.NodeChange) []corev1.Taint {
	taints := slices.Clone(n.Spec.Taints)
	if c.InService != nil {
		ours := remediations.Undo{Kind: remediations.UndoTaint, Key: corev1.TaintNodeOutOfService, At: *c.InService}
		taints = slices.DeleteFunc(taints, ours.Set)
	}
	if c.OutOfService != nil {
		t := outOfService(*c.OutOfService)
		if !slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			taints = append(taints, t)
		}
	}
	return taints
}
