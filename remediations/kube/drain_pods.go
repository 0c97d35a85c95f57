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

// podsLeft has the pods of a node that must go, by what happens to them.
type podsLeft struct {
	evict  []corev1.Pod // to be evicted
	ending []corev1.Pod // already evicted or deleted, by this drain or another client: the drain waits for them
	stuck  []corev1.Pod // already terminating, but no kubelet ends them: the drain counts them as gone
	// The pods that came after the first listing and may run on a cordoned node. If they were
	// evicted, their controllers would only create the next ones there.
	returned []corev1.Pod
	// The pods without a controller, if the drain must wait until they end by themselves.
	awaited []corev1.Pod
	// The pods that make the drain fail.
	unmanaged, emptyDir []corev1.Pod
}

// kubectl's code selects the pods that a drain must evict: it leaves out mirror pods, and pods of a
// DaemonSet that exists. kubectl's other checks are switched off, because they would refuse or wait
// for pods that already terminate, and their messages mention kubectl's flags.
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
			// Finished pods of DaemonSets are ignored. On a node under disk pressure, the kubelet
			// ends each pod of a DaemonSet again, and the DaemonSet creates the next one. A drain
			// that evicted these pods would not end.
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

// overdue reports whether the drain must stop waiting for a terminating pod. If Ready is Unknown,
// the kubelet is silent and does not know of the deletion, so the wait begins with the deletion or
// with the silence, whichever is later. A kubelet that reports Ready=False may still be ending the
// pod, so the wait begins after the grace period. A missing Ready condition does not count as a
// fault.
func (r *drainRun) overdue(n *corev1.Node, pod *corev1.Pod) bool {
	ready := remediations.ReadyCondition(n)
	if ready == nil || ready.Status == corev1.ConditionTrue {
		return false
	}
	since := pod.DeletionTimestamp.Time // the API server sets DeletionTimestamp to the end of the grace period
	if ready.Status == corev1.ConditionUnknown && pod.DeletionGracePeriodSeconds != nil {
		since = since.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	if unready := ready.LastTransitionTime.Time; unready.After(since) {
		since = unready
	}
	return r.Now().Sub(since) > r.DeadAfter
}

// unmanaged is also true for a pod of a DaemonSet that is gone. The caller has already left out
// those of existing DaemonSets.
func unmanaged(pod *corev1.Pod) bool {
	return metav1.GetControllerOf(pod) == nil || ofDaemonSet(pod)
}

func ofDaemonSet(pod *corev1.Pod) bool {
	c := metav1.GetControllerOf(pod)
	return c != nil && c.Kind == "DaemonSet" && c.APIVersion == "apps/v1"
}

// mayReturn reports whether the pod's controller may place the next pod on the cordoned node, too:
// it is a DaemonSet, or the pod tolerates the cordon. kubectl's code knows only the DaemonSets of
// apps/v1, but OpenKruise has its own.
func mayReturn(pod *corev1.Pod) bool {
	c := metav1.GetControllerOf(pod)
	return !unmanaged(pod) && (c.Kind == "DaemonSet" || slices.ContainsFunc(pod.Spec.Tolerations, toleratesCordon))
}

var cordoned = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// A toleration without a key must have the operator Exists. ToleratesTaint leaves that to the API
// server's validation.
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
