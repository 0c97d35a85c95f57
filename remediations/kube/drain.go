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

// ErrNotCordoned: the node was uncordoned, or was never cordoned; the node would refill as fast as
// the drain empties it.
var ErrNotCordoned = errors.New("the node is not cordoned")

// ErrDrainRefused: a pod may not be evicted, and trying again would not change that. A person must
// decide.
var ErrDrainRefused = errors.New("a pod may not be evicted")

const (
	// drainEvery is how long a drain waits between its rounds, as kubectl waits before it evicts
	// again.
	drainEvery = 5 * time.Second
	// deadAfter is how long the drain waits for a pod that cannot end.
	deadAfter = time.Minute
	// evictAtOnce bounds the load of one drain on the API server and on people's webhooks.
	evictAtOnce = 8
	// callTimeout bounds one call. The API server itself gives up after a minute, and a slow
	// webhook may take most of that.
	callTimeout = time.Minute
)

// Drainer evicts the pods of a node. It compares its clock with the API server's clock to find pods
// that cannot end.
type Drainer struct {
	Client kubernetes.Interface
	Now    func() time.Time
	// Every is how long it waits between two rounds; zero: 5 s.
	Every time.Duration
}

// DrainOptions says which pods are evicted and how. The zero value evicts all pods but those that
// no controller would create again.
type DrainOptions struct {
	// UID is the Node's; empty: that of the Node found first. Another Node of that name is not
	// drained.
	UID types.UID
	// KeepEmptyDir refuses a node if a pod there has an emptyDir volume: an eviction deletes its
	// content.
	KeepEmptyDir bool
	// WithoutController says how to treat pods that have no controller. By default such a pod
	// refuses the drain.
	WithoutController remediations.WithoutController
	// MaxGrace caps a pod's grace period, to no less than a second; zero: the pod's own grace
	// period.
	MaxGrace time.Duration
	// DeadAfter is how long the drain waits for a terminating pod that no kubelet ends; zero: a
	// minute. See overdue.
	DeadAfter time.Duration
	// Progress is called with the report whenever the report has changed, in the goroutine that
	// drains: it must not block.
	Progress func(DrainReport)
}

// Drain evicts all pods of a cordoned node, except those of DaemonSets and mirror pods, and returns
// when they are gone. A pod that came after the first listing and may run on a cordoned node stays:
// its owner would put the next one there too. Drain tries pods that are held back again until ctx
// ends. Then it sends nothing more and returns at once with what was done; its error is the
// context's cause. A second call continues from the present state.
//
// Errors: ErrNotCordoned; ErrDrainRefused, which names the pods; engine.ErrNotFound, the Node is
// gone or was replaced; the API server's 401 or 403, rights are missing.
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

// drainRun is one call of Drain. It keeps nothing that another call would need.
type drainRun struct {
	Drainer
	DrainOptions
	node              string
	listed            bool               // the pods were read once
	seen, terminating map[types.UID]bool // what this call has counted already
	report            DrainReport
	reported          string
}

// round reads the node's present state and evicts the pods that must go. An error is final; a
// problem that may pass is in the report. kubectl's own loop over evictions is not used. That loop
// sleeps through the end of its context, treats a 500 as final, and reports a refused pod only when
// all others are gone. It might also evict the next pod of that name, which runs elsewhere.
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
		return false, fmt.Errorf("%w: %s: nothing would create again a pod that has no controller; delete it, or set withoutController: wait or evict on the plan's step drain", ErrDrainRefused, some(left.unmanaged))
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
	if ctx.Err() == nil { // else the previous round already knows what holds the others
		r.explain(ctx, left, held)
	}
	return false, err
}

// look reads the Node. A person can stop a drain with uncordon, and the drain must see that even
// before the engine does.
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
		return nil, fmt.Errorf("another Node has that name now: %w", engine.ErrNotFound)
	case !n.Spec.Unschedulable:
		return nil, ErrNotCordoned
	}
	r.UID = n.UID
	return n, nil
}

// evict evicts all of them, a few at a time, and returns the pods that are held back. The first
// final refusal stops it: more disruption does not help if the node cannot be emptied.
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

// count updates the report with what the round has found and evicted so far.
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

// trouble handles a failed read: missing rights end the drain; other errors are reported and the
// read is tried again. A 401 does not mean missing rights, because an API server that has just
// started answers it to a good token (kubernetes/kubernetes#65785).
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
