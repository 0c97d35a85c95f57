package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// OutOfService is the taint that marks a machine as off for good: volumes are detached and pods
// deleted without waiting for its kubelet. On a machine that still runs it loses data.
func OutOfService(at time.Time) corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: at}}
}

// taintsAfter returns the Node's taints after the change; all others stay as they were read. A
// taint of the same kind that is already there stays as it is.
func taintsAfter(n *corev1.Node, c engine.NodeChange) []corev1.Taint {
	taints := slices.Clone(n.Spec.Taints)
	if c.InService != nil {
		ours := remediations.Undo{Kind: remediations.UndoTaint, Key: corev1.TaintNodeOutOfService, At: *c.InService}
		taints = slices.DeleteFunc(taints, ours.Set)
	}
	if c.OutOfService != nil {
		t := OutOfService(*c.OutOfService)
		if !slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			taints = append(taints, t)
		}
	}
	return taints
}
