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

// ErrNotCordoned: the node was uncordoned, or nobody cordoned it; a drain would refill as fast as it empties.
var ErrNotCordoned = errors.New("the node is not cordoned")

// ErrDrainRefused: a pod may not be evicted, and trying again would not change that. A person must decide.
var ErrDrainRefused = errors.New("a pod may not be evicted")

const (
	// drainEvery is how long a drain waits between its rounds, as kubectl waits before it evicts again.
	drainEvery = 5 * time.Second
	// deadAfter is how long a pod that cannot end is waited for.
	deadAfter = time.Minute
	// evictAtOnce bounds how much of the API server, and of people's webhooks, one drain takes.
	evictAtOnce = 8
	// callTimeout bounds one call; the API server itself gives up after a minute, most of which a slow webhook may take.
	callTimeout = time.Minute
)

// Drainer evicts the pods of a node. Its clock is for pods that cannot end, and those are on the API server's clock.
type Drainer struct {
	Client kubernetes.Interface
	Now    func() time.Time
	// Every is how long it waits between two rounds; zero: 5 s.
	Every time.Duration
}

// DrainOptions says which pods go and how. The zero value evicts all but those that nobody would make anew.
type DrainOptions struct {
	// UID is the Node's; empty: that of the Node found first. Another Node of that name is not drained.
	UID types.UID
	// KeepEmptyDir refuses a node on which a pod has an emptyDir volume, the content of which an eviction deletes.
	KeepEmptyDir bool
	// WithoutController is what is done with pods that have no controller. By default such a pod refuses the drain.
	WithoutController remediations.WithoutController
	// MaxGrace caps how long a pod may take to end, never below a second; zero: as long as the pod says.
	MaxGrace time.Duration
	// DeadAfter is how long a terminating pod is waited for where no kubelet ends it; zero: a minute. See overdue.
	DeadAfter time.Duration
	// Progress is told how far the drain is whenever that has changed, by the goroutine that drains: it must not block.
	Progress func(DrainReport)
}

// Drain evicts all pods of a cordoned node, except those of DaemonSets and mirror pods, and returns when they are gone.
// A pod that came after the first listing and may run on a cordoned node stays: its owner would put the next one there too.
// What holds a pod back is tried again until ctx ends; after that it sends nothing more, returns at once what was done,
// and its error is the context's cause. Calling it again goes on where things stand.
//
// Errors: ErrNotCordoned; ErrDrainRefused, which names the pods; engine.ErrNotFound, the Node is gone or is another one;
// the API server's 401 or 403, rights are missing.
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
		r.tell()
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
	told              string
}

// round looks at the node as it is and evicts what is to go. An error is final; what may pass is in the report. kubectl's
// own loop over evictions is not used: it sleeps through the end of its context, takes a 500 for final, says that a pod
// is refused only when all others are gone, and might evict the next pod of that name, which runs elsewhere.
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
	r.tell()
	held, err := r.evict(ctx, left.evict)
	r.count(left)
	if ctx.Err() == nil { // else what holds the others is known from the round before
		r.explain(ctx, left, held)
	}
	return false, err
}

// look reads the Node. A drain that somebody ended by uncordoning must see it, whatever the engine has noticed.
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

// evict asks for all of them, a few at a time, and returns what holds some back. The first that is refused for good
// ends it: to disrupt more workloads for a node that cannot be emptied helps nobody.
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

// count brings the report up to what the round has found, and asked for so far.
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

// trouble is for reading that failed: missing rights end the drain, the rest is tried again and said. A 401 is no missing right: an API
// server that has just started says it of a good token (kubernetes/kubernetes#65785).
func (r *drainRun) trouble(ctx context.Context, doing string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if ctx.Err() == nil {
		r.report.Trouble = doing + ": " + kit.Brief(err)
	}
	return nil
}

func (r *drainRun) tell() {
	if now := r.report.String(); r.Progress != nil && now != r.told {
		r.told = now
		r.Progress(r.report)
	}
}
