package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// podSteps are the steps that restart a pod on their node.
var podSteps = []string{"restart-cni", "restart-kube-proxy"}

// wideSteps are the steps that restart such pods in the whole cluster. askingSteps are all steps
// whose provider can report about pods.
var wideSteps = []string{"apply-cni", "rollout-restart"}

var askingSteps = slices.Concat(podSteps, wideSteps)

// podProvider restarts the node's own pod of a DaemonSet. Like the provider of machines it can
// prove its step, but it knows nothing about machines.
type podProvider struct{ provider }

// Survey names the pod that exists before the restart.
func (r podProvider) Survey(ctx context.Context, m Machine) remediations.Survey {
	s := r.provider.Survey(ctx, m)
	if s.Trouble == "" {
		return remediations.Keeping(before{Instance: at(r.w, func() string { return r.w.podOf(m.Node) }), Hostname: m.Node})
	}
	return s
}

// Proven reports whether another pod runs in its place and is Ready, which it is if its node is.
func (r podProvider) Proven(_ context.Context, kept remediations.Before) (remediations.PodProof, error) {
	b := beforeOf(kept)
	r.enter("proven", false)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	m := r.w.machines[b.Hostname]
	switch {
	case r.w.mood.cut:
		return remediations.PodProof{}, errors.New("connection reset")
	case r.w.podOf(b.Hostname) == b.Instance:
		return remediations.PodProof{Missing: "the old pod is still there"}, nil
	case m == nil || !m.well():
		return remediations.PodProof{Missing: "the new pod is not Ready"}, nil
	}
	return remediations.PodProof{}, nil
}

// leaving sets or removes an autoscaler's mark on a node that it deletes.
func (w *world) leaving(n *corev1.Node, leaves bool) {
	const key = "ToBeDeletedByClusterAutoscaler"
	n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == key })
	if leaves {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

// podOf is the pod of the DaemonSet on that node.
func (w *world) podOf(name string) string {
	if m := w.machines[name]; m != nil {
		return fmt.Sprintf("%s-pod%d", name, m.podRestarts)
	}
	return ""
}

// restartPod replaces the pod on the node. If only the network is sick, that cures it.
func (w *world) restartPod(name string) {
	if m := w.machines[name]; m != nil {
		m.podRestarts++
		w.restartKubelet(name)
	}
}
