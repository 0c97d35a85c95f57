package kube

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OutOfService is the taint that says that a machine is off for good: volumes are detached and pods deleted without
// waiting for its kubelet. On a machine that still runs it loses data.
func OutOfService(at time.Time) corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: at}}
}

// Taint adds the taint to the Node as it was read, by a write that leaves all others as they are. TimeAdded makes it
// Drydock's own: put the same time on the record first. Where somebody has set that key and effect already theirs stays,
// and nothing is written.
func (j Journal) Taint(ctx context.Context, n *corev1.Node, t corev1.Taint) (*corev1.Node, error) {
	if slices.ContainsFunc(n.Spec.Taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
		return n, nil
	}
	return j.writeTaints(ctx, n, append(slices.Clone(n.Spec.Taints), t))
}

// Untaint takes the taint of that key that Drydock set at that time off the Node as it was read. No such taint: nothing
// is written.
func (j Journal) Untaint(ctx context.Context, n *corev1.Node, key string, at time.Time) (*corev1.Node, error) {
	left := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return setAt(t, key, at) })
	if len(left) == len(n.Spec.Taints) {
		return n, nil
	}
	return j.writeTaints(ctx, n, left)
}

// OwnsTaint says whether the Node has the taint of that key that Drydock set at that time. One live read. managedFields
// cannot say it: taints are one field to them, owned by whoever changed any of them last, such as the controller that
// marks the node as not ready. But only who sets a taint gives it a time, and kubectl gives none.
func (j Journal) OwnsTaint(ctx context.Context, node, key string, at time.Time) (bool, error) {
	n, err := j.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false, translate("reading who tainted Node "+node, err)
	}
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return setAt(t, key, at) }), nil
}

// setAt compares whole seconds, which is all that the API server keeps.
func setAt(t corev1.Taint, key string, at time.Time) bool {
	return t.Key == key && t.TimeAdded != nil && t.TimeAdded.Unix() == at.Unix()
}

func (j Journal) writeTaints(ctx context.Context, n *corev1.Node, taints []corev1.Taint) (*corev1.Node, error) {
	p := nodePatch{Metadata: patchMeta{UID: n.UID, ResourceVersion: n.ResourceVersion}, Spec: map[string]any{"taints": taints}}
	return patchNode(ctx, j.Client, n.Name, p)
}
