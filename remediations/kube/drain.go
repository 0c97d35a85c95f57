package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// ErrNotCordoned means that the node was uncordoned, or was never cordoned. Without a cordon, the
// scheduler would place new pods there as fast as the drain evicts them.
var ErrNotCordoned = errors.New("the node is not cordoned")

// ErrDrainRefused means that the drain must not evict a pod, now or later. A person must decide.
var ErrDrainRefused = errors.New("a pod may not be evicted")

const (
	// kubectl waits for the same time before it evicts a pod again.
	drainEvery = 5 * time.Second
	// How long the drain waits for a terminating pod that the kubelet of its node does not end (see
	// overdue).
	deadAfter = time.Minute
	// To limit the load on the API server and on webhooks.
	evictAtOnce = 8
	// A slow webhook may need most of a minute. After a minute, the API server itself gives up.
	callTimeout = time.Minute
)

// Drainer evicts the pods of a node. It compares its clock with the deletion times of pods, so that
// clock must agree with the API server's.
type Drainer struct {
	Client kubernetes.Interface
	Now    func() time.Time
	// The wait between two rounds. Zero means 5 s.
	Every time.Duration
}

// DrainOptions define the pods that are evicted, and how. The zero value evicts all pods, but a pod
// without a controller makes the drain fail, because it would not be created again.
type DrainOptions struct {
	// The drain fails if the Node with this name has another UID. If it is empty, the UID that is
	// read first counts.
	UID types.UID
	// The drain fails if a pod has an emptyDir volume, because an eviction deletes the volume's
	// content.
	KeepEmptyDir bool
	// By default the drain fails if there is a pod without a controller.
	WithoutController remediations.WithoutController
	// Limits the grace period of each pod. Less than one second counts as one second. Zero means no
	// limit.
	MaxGrace time.Duration
	// How long the drain waits for a terminating pod that no kubelet ends (see overdue). Zero means
	// a minute.
	DeadAfter time.Duration
	// Called whenever the report has changed, in the goroutine of the drain, so it must not block.
	Progress func(DrainReport)
}

// Drain evicts all pods of a cordoned node, except mirror pods, pods of DaemonSets, and pods that
// came after the first listing and tolerate the cordon: their owner would place the next one there,
// too. It repeats a refused eviction, for example because of a PodDisruptionBudget, until ctx ends,
// and then returns the context's cause. Other errors are ErrNotCordoned, ErrDrainRefused,
// engine.ErrNotFound (the Node is gone or was replaced) and a 403 of a read. A later call continues
// from the state at that time.
func (d Drainer) Drain(ctx context.Context, node string, o DrainOptions) (DrainReport, error) {
	d.Every, o.DeadAfter = cmp.Or(d.Every, drainEvery), cmp.Or(o.DeadAfter, deadAfter)
	r := &drainRun{Drainer: d, DrainOptions: o, node: node, seen: map[types.UID]bool{}, terminating: map[types.UID]bool{}}
	r.report.Trouble = "its pods have not been read yet"
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.report, fmt.Errorf("draining Node %s: %w; %s", node, context.Cause(ctx), r.report)
		case <-next.C:
		}
		done, err := r.round(ctx)
		r.reportProgress()
		switch {
		case err != nil:
			return r.report, fmt.Errorf("draining Node %s: %w", node, err)
		case done:
			return r.report, nil
		}
		next.Reset(d.Every)
	}
}

type drainRun struct {
	Drainer
	DrainOptions
	node              string
	listed            bool               // the pods were read once
	seen, terminating map[types.UID]bool // the pods that this call has counted already
	report            DrainReport
	reported          string
}

// round reads the present state, and evicts the pods that must go. An error ends the drain.
// Problems that may pass are only in the report.
//
// Drain does not use kubectl's own loop of evictions. That loop sleeps after its context has ended,
// treats a 500 as final, and reports a refused pod only when all others are gone. It might also
// evict a new pod with the same name that runs on another node.
func (r *drainRun) round(ctx context.Context) (done bool, err error) {
	n, err := r.look(ctx)
	if n == nil || err != nil {
		return false, err
	}
	left, err := r.pods(ctx, n)
	if err != nil {
		return false, r.trouble(ctx, "reading its pods", err)
	}
	r.listed, r.report.Trouble = true, ""
	switch {
	case len(left.unmanaged) > 0:
		return false, fmt.Errorf("%w: %s: a pod without a controller is not created again; delete it, or set withoutController to wait or evict on the plan's step drain", ErrDrainRefused, some(left.unmanaged))
	case len(left.emptyDir) > 0:
		return false, fmt.Errorf("%w: %s: its emptyDir volume would be lost; delete the pod, or drain without KeepEmptyDir", ErrDrainRefused, some(left.emptyDir))
	case len(left.evict)+len(left.ending)+len(left.awaited) == 0:
		r.count(left)
		r.report.Held, r.report.More = nil, 0
		return true, nil
	}
	r.count(left)
	r.reportProgress()
	held, err := r.evict(ctx, left.evict)
	r.count(left)
	if ctx.Err() == nil { // otherwise the previous round's report of what holds the pods stays
		r.explain(ctx, left, held)
	}
	return false, err
}

// The Node is read in each round: a person may stop a drain by uncordoning the node, and the drain
// must then stop before the engine's next pass.
func (r *drainRun) look(ctx context.Context) (*corev1.Node, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := r.Client.CoreV1().Nodes().Get(call, r.node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, engine.ErrNotFound
	case err != nil:
		return nil, r.trouble(ctx, "reading the Node", err)
	case r.UID != "" && r.UID != n.UID:
		return nil, fmt.Errorf("the Node was replaced by another one with the same name: %w", engine.ErrNotFound)
	case !n.Spec.Unschedulable:
		return nil, ErrNotCordoned
	}
	r.UID = n.UID
	return n, nil
}

// evict returns the pods that cannot be evicted yet. It stops when the API server refuses an
// eviction for good: if the node cannot be emptied, further evictions would disrupt pods for
// nothing.
func (r *drainRun) evict(ctx context.Context, pods []corev1.Pod) ([]heldPod, error) {
	answers := make([]answer, len(pods))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(evictAtOnce)
	for i := range pods {
		g.Go(func() error {
			var err error
			answers[i], err = r.evictOne(gctx, &pods[i])
			return err
		})
	}
	err := g.Wait()
	var held []heldPod
	for i, a := range answers {
		switch {
		case a.accepted:
			r.report.Evicted++
			r.terminating[pods[i].UID] = true
		case a.gone:
			r.report.Gone++
		case a.heldBy != nil:
			held = append(held, heldPod{pod: &pods[i], by: a.heldBy})
		}
	}
	return held, err
}

func (r *drainRun) count(left podsLeft) {
	r.report.Stuck, r.report.Terminating, r.report.Returned = len(left.stuck), len(left.ending), some(left.returned)
	for _, list := range [][]corev1.Pod{left.stuck, left.ending, left.awaited, left.evict} {
		for i := range list {
			r.seen[list[i].UID] = true
		}
	}
	for i := range left.evict {
		if r.terminating[left.evict[i].UID] {
			r.report.Terminating++
		}
	}
	r.report.Total, r.report.Left = len(r.seen), len(left.ending)+len(left.awaited)+len(left.evict)
}

// trouble ends the drain if rights are missing (403). After other errors the next round reads
// again. A 401 is such an error, because an API server that has just started answers 401 to a valid
// token (kubernetes/kubernetes#65785).
func (r *drainRun) trouble(ctx context.Context, doing string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if ctx.Err() == nil {
		r.report.Trouble = doing + ": " + kit.Brief(err)
	}
	return nil
}

func (r *drainRun) reportProgress() {
	if now := r.report.String(); r.Progress != nil && now != r.reported {
		r.reported = now
		r.Progress(r.report)
	}
}
