package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/providers/kit"
)

// The zero value means that the result is unknown. The list of pods in the next round then shows
// whether the pod is gone.
type answer struct {
	accepted, gone bool
	heldBy         error // why the eviction must be tried again
}

// evictOne does nothing if ctx has ended. An error ends the drain.
func (r *drainRun) evictOne(ctx context.Context, pod *corev1.Pod) (answer, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := r.send(call, pod)
	switch {
	case err == nil:
		return answer{accepted: true}, nil
	case apierrors.IsNotFound(err):
		return answer{gone: true}, nil
	case apierrors.IsConflict(err), ctx.Err() != nil:
		return answer{}, nil // the pod was replaced under the same name, or ctx has ended
	case kit.Final(err):
		return answer{}, fmt.Errorf("%w: %s: %s", ErrDrainRefused, kit.NameOf(pod), kit.Brief(err))
	}
	return answer{heldBy: err}, nil
}

// send evicts exactly this pod, by its UID: the next pod of a StatefulSet has the same name and may
// run on another node. The client must not retry by itself, because after a Retry-After it would do
// so for minutes. The drain must know at once what prevents the eviction.
func (r *drainRun) send(ctx context.Context, pod *corev1.Pod) error {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if own := pod.Spec.TerminationGracePeriodSeconds; r.MaxGrace > 0 && own != nil && *own > int64(r.MaxGrace/time.Second) {
		seconds := max(1, int64(r.MaxGrace/time.Second)) // 0 would kill the pod without a signal
		o.GracePeriodSeconds = &seconds
	}
	e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &o}
	return r.Client.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		MaxRetries(0).Body(e).Do(ctx).Error()
}
