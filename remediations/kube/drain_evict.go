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

// answer is the result of one eviction. The zero value: the result is unknown, and the next round's
// list will show it.
type answer struct {
	accepted, gone bool
	heldBy         error // the eviction must be tried again
}

// evictOne sends one eviction, or none when ctx has ended. An error is final.
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
		return answer{}, nil // another pod of that name, or ctx ended
	case kit.Final(err):
		return answer{}, fmt.Errorf("%w: %s: %s", ErrDrainRefused, kit.NameOf(pod), kit.Brief(err))
	}
	return answer{heldBy: err}, nil
}

// send evicts exactly this pod: a StatefulSet's pod may meanwhile run elsewhere under the same
// name. The client must not retry by itself, as it does for minutes after a Retry-After: the drain
// must know at once what holds the pod back.
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
