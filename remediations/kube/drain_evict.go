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

// answer is what came of one eviction; none of it where nobody knows, which the next round's list will show.
type answer struct {
	accepted, gone bool
	heldBy         error // and to be tried again
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
		return answer{}, nil // another pod of that name, or cut short
	case kit.Final(err):
		return answer{}, fmt.Errorf("%w: %s: %s", ErrDrainRefused, kit.NameOf(pod), kit.Brief(err))
	}
	return answer{heldBy: err}, nil
}

// send asks for the eviction of this very pod: one of a StatefulSet may run elsewhere under the same name by now. The
// client is kept from trying again by itself, as it does for minutes where the API server says Retry-After: what holds
// the pod back should be known at once.
func (r *drainRun) send(ctx context.Context, pod *corev1.Pod) error {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if own := pod.Spec.TerminationGracePeriodSeconds; r.MaxGrace > 0 && own != nil && *own > int64(r.MaxGrace/time.Second) {
		seconds := max(1, int64(r.MaxGrace/time.Second)) // 0 would be a kill without a word to the pod
		o.GracePeriodSeconds = &seconds
	}
	e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &o}
	return r.Client.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		MaxRetries(0).Body(e).Do(ctx).Error()
}
