package kube

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/drain"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

// podsLeft are the pods of a node that have to go, grouped by how they are treated.
type podsLeft struct {
	evict  []corev1.Pod // to be evicted
	ending []corev1.Pod // already evicted or deleted, by this drain or another client: the drain waits for them
	stuck  []corev1.Pod // already asked to end, but no kubelet ends them: they count as gone
	// These came after the first listing and may run on a cordoned node, so an eviction would only
	// bring the next one.
	returned []corev1.Pod
	// These have no controller; the drain waits until they end by themselves.
	awaited []corev1.Pod
	// These refuse the drain.
	unmanaged, emptyDir []corev1.Pod
}

// pods lists the node's pods, and no others, page by page. kubectl decides which of them a drain
// concerns: not mirror pods, and not those of a DaemonSet that exists. kubectl is set to let
// everything else through. Its refusals mention kubectl's flags, and it would refuse or wait for
// pods that already terminate.
func (r *drainRun) pods(ctx context.Context, n *corev1.Node) (podsLeft, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	var left podsLeft
	h := drain.Helper{
		Ctx: ctx, Client: r.Client, ChunkSize: kit.PodsPerPage, GracePeriodSeconds: -1,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
	}
	list, errs := h.GetPodsForDeletion(n.Name)
	if len(errs) > 0 {
		return left, errors.Join(errs...)
	}
	for _, pod := range list.Pods() {
		switch {
		case kit.Finished(&pod) && ofDaemonSet(&pod):
			// It runs no longer. On a node under disk pressure the kubelet ends each pod of a DaemonSet
			// again, and the DaemonSet makes the next: a drain that evicted them would not end.
		case r.listed && !r.seen[pod.UID] && mayReturn(&pod):
			left.returned = append(left.returned, pod)
		case pod.DeletionTimestamp != nil && r.overdue(n, &pod):
			left.stuck = append(left.stuck, pod)
		case pod.DeletionTimestamp != nil:
			left.ending = append(left.ending, pod)
		case kit.Finished(&pod):
			left.evict = append(left.evict, pod)
		case r.WithoutController == remediations.WithoutControllerWait && unmanaged(&pod):
			left.awaited = append(left.awaited, pod)
		case r.WithoutController != remediations.WithoutControllerEvict && unmanaged(&pod):
			left.unmanaged = append(left.unmanaged, pod)
		case r.KeepEmptyDir && hasEmptyDir(&pod):
			left.emptyDir = append(left.emptyDir, pod)
		default:
			left.evict = append(left.evict, pod)
		}
	}
	return left, nil
}

// overdue reports that a terminating pod will not end because of its node's state. A silent kubelet
// (Ready is Unknown) does not know of the deletion, so the pod's grace period means nothing. The
// wait counts from the deletion, or from the silence if that came later. A kubelet that reports
// Ready=False may still be ending the pod, so the grace period comes first. A missing condition is
// not a fault.
func (r *drainRun) overdue(n *corev1.Node, pod *corev1.Pod) bool {
	ready := remediations.ReadyCondition(n)
	if ready == nil || ready.Status == corev1.ConditionTrue {
		return false
	}
	since := pod.DeletionTimestamp.Time // the API server sets it to the end of the grace period
	if ready.Status == corev1.ConditionUnknown && pod.DeletionGracePeriodSeconds != nil {
		since = since.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	if unready := ready.LastTransitionTime.Time; unready.After(since) {
		since = unready
	}
	return r.Now().Sub(since) > r.DeadAfter
}

// unmanaged pods have no controller, or a DaemonSet that is gone: kubectl lets no other DaemonSet's
// pod through that has not finished.
func unmanaged(pod *corev1.Pod) bool {
	return metav1.GetControllerOf(pod) == nil || ofDaemonSet(pod)
}

func ofDaemonSet(pod *corev1.Pod) bool {
	c := metav1.GetControllerOf(pod)
	return c != nil && c.Kind == "DaemonSet" && c.APIVersion == "apps/v1"
}

// mayReturn reports that the pod's controller may put its next pod on the cordoned node too. Every
// DaemonSet may: kubectl leaves out the pods of apps/v1 only, and OpenKruise has a DaemonSet of its
// own.
func mayReturn(pod *corev1.Pod) bool {
	c := metav1.GetControllerOf(pod)
	return !unmanaged(pod) && (c.Kind == "DaemonSet" || slices.ContainsFunc(pod.Spec.Tolerations, toleratesCordon))
}

// cordoned is the taint of a cordoned node, which keeps the scheduler from placing pods there.
var cordoned = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// toleratesCordon reports that the scheduler lets a pod with this toleration onto a cordoned node.
// A toleration without a key must have the operator Exists; ToleratesTaint leaves that check to the
// API server.
func toleratesCordon(t corev1.Toleration) bool {
	return (t.Key != "" || t.Operator == corev1.TolerationOpExists) && t.ToleratesTaint(logr.Discard(), &cordoned, false)
}

func hasEmptyDir(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].EmptyDir != nil {
			return true
		}
	}
	return false
}
