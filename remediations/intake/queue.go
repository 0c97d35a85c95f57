package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
)

const (
	// Accepted alerts that are not on their Nodes yet: more than one for each node of a cluster
	// with 5,000 nodes. An alert takes about 1.5 KB, at most 6 KB. If the process dies, they are
	// lost, and the leader's poll of Alertmanager brings back those that are still active.
	maxQueued = 8192
	// Enough to keep an API server busy. More would only wait there, ahead of a repair's writes and
	// of the leader's Lease.
	writesAtOnce = 16
	// The wait before the first retry of a failed write. It doubles with each retry, up to
	// againLongest.
	againFirst   = time.Second
	againLongest = 30 * time.Second
	// How long the queue still writes when the process stops.
	drainFor = 6 * time.Second
)

// ErrQueueFull means that the sender must send the alert again.
var ErrQueueFull = errors.New("the queue of alerts that wait to be written on their Nodes is full")

// errStopping means that the sender must send the alert again, to another replica.
var errStopping = errors.New("this Drydock replica is stopping and accepts no more alerts; send them again")

// ErrGone means that the Node with the expected UID does not exist any more.
var ErrGone = errors.New("the Node is gone, or another Node has its name")

// AnnotationWriter writes annotations on the Node of that name if its UID matches, or returns
// ErrGone. A nil value removes the key.
type AnnotationWriter func(ctx context.Context, name string, uid types.UID, annotations map[string]*string) error

// Queue holds the alerts that were accepted and are not on their Nodes yet. All queued alerts of
// one Node become one write, with the newest state of each. It is safe for concurrent use, and a
// manager.Runnable.
type Queue struct {
	write  AnnotationWriter
	clock  clock.WithDelayedExecution
	log    logr.Logger
	places chan struct{} // one element for each alert that is queued or being written
	ready  chan nodeKey  // the nodes with queued alerts, each at most once

	refused prometheus.Counter

	mu    sync.Mutex
	nodes map[nodeKey]*queued
	stop  chan struct{}
}

// A later Node of the same name has another UID.
type nodeKey struct {
	name string
	uid  types.UID
}

type queued struct {
	// For the next write, and of the write in progress. A nil value removes the key.
	waiting, writing map[string]*string
	// The keys in waiting that count against maxQueued. held is their number in writing.
	alerts map[string]bool
	held   int
	// The node is in the channel ready, is being written, or waits for a retry.
	due   bool
	again time.Duration
}

// NewQueue makes an empty queue.
func NewQueue(write AnnotationWriter, c clock.WithDelayedExecution, reg prometheus.Registerer, log logr.Logger) (*Queue, error) {
	q := &Queue{
		write: write, clock: c, log: log, nodes: map[nodeKey]*queued{},
		places: make(chan struct{}, maxQueued), ready: make(chan nodeKey, maxQueued), stop: make(chan struct{}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "drydock_alerts_queue_full_total",
			Help: "Alerts rejected because the queue stayed full. Drydock answers 503, and Alertmanager sends them again.",
		}),
	}
	depth := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "drydock_alerts_queued", Help: "Alerts that were taken, from posts or from a poll of Alertmanager, and are not on their Nodes yet; at most 8,192.",
	}, func() float64 { return float64(len(q.places)) })
	for _, m := range []prometheus.Collector{depth, q.refused} {
		if err := reg.Register(m); err != nil {
			return nil, fmt.Errorf("registering the metrics of the queue: %w", err)
		}
	}
	return q, nil
}

// Put queues the annotations of one alert: its value under its key, and nil for each key that must
// be removed to make room. It waits for a place in the queue until ctx ends.
func (q *Queue) Put(ctx context.Context, n *corev1.Node, annotations map[string]*string) error {
	if taken, err := q.Offer(n, annotations); taken || err != nil {
		return err
	}
	select {
	case q.places <- struct{}{}:
	case <-q.stop:
		return errStopping
	case <-ctx.Done():
		q.refused.Inc()
		return ErrQueueFull
	}
	q.merge(nodeKey{n.Name, n.UID}, alertIn(annotations), annotations, true)
	return nil
}

// Offer is Put without the wait. It returns false if the queue is full.
func (q *Queue) Offer(n *corev1.Node, annotations map[string]*string) (taken bool, err error) {
	select {
	case <-q.stop:
		return false, errStopping
	default:
	}
	of, key := nodeKey{n.Name, n.UID}, alertIn(annotations)
	if q.merge(of, key, annotations, false) {
		return true, nil // a newer state of a queued alert needs no new place
	}
	select {
	case q.places <- struct{}{}:
	default:
		return false, nil
	}
	return q.merge(of, key, annotations, true), nil
}

// The alert's key is the only one with a value: the others are to be removed.
func alertIn(annotations map[string]*string) (key string) {
	for k, v := range annotations {
		if v != nil {
			key = k
		}
	}
	return key
}

// placed means that the caller has reserved one of the maxQueued places for the alert. merge
// returns false if the alert needs a place and has none.
func (q *Queue) merge(of nodeKey, key string, annotations map[string]*string, placed bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.nodes[of]
	known := w != nil && w.alerts[key]
	switch {
	case known && placed:
		<-q.places // another post has queued the same alert meanwhile, so the second place is free again
	case !known && !placed:
		return false
	}
	if w == nil {
		w = &queued{waiting: map[string]*string{}, alerts: map[string]bool{}}
		q.nodes[of] = w
	}
	maps.Copy(w.waiting, annotations)
	w.alerts[key] = true
	if !w.due {
		w.due = true
		q.ready <- of // never blocks: each node is in the channel at most once, and the channel has room for maxQueued
	}
	return true
}

// Waiting returns the value that the key will have when the queue is written, or nil if it will be
// removed. ok is false if no write of this key is queued.
func (q *Queue) Waiting(n *corev1.Node, key string) (value *string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.nodes[nodeKey{n.Name, n.UID}]
	if w == nil {
		return nil, false
	}
	if value, ok = w.waiting[key]; !ok {
		value, ok = w.writing[key]
	}
	return value, ok
}

// NeedLeaderElection returns false: every replica receives alerts.
func (q *Queue) NeedLeaderElection() bool { return false }

// Start writes queued alerts until ctx ends. It then accepts no more alerts, and writes the
// remaining ones for at most drainFor.
func (q *Queue) Start(ctx context.Context) error {
	drain, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	empty := make(chan struct{}, writesAtOnce)
	var workers sync.WaitGroup
	for range writesAtOnce {
		workers.Go(func() { q.work(drain, empty) })
	}
	<-ctx.Done()
	close(q.stop)
	timer := q.clock.NewTimer(drainFor)
	defer timer.Stop()
	for over := false; !over && len(q.places) > 0; {
		select {
		case <-empty:
		case <-timer.C():
			over = true
		}
	}
	cancel()
	workers.Wait()
	if left := len(q.places); left > 0 {
		q.log.Info("this replica stops before all accepted alerts are on their Nodes; the leader's next poll of Alertmanager brings those that are active", "alerts", left)
	}
	return nil
}

// work sends on written after each Node.
func (q *Queue) work(ctx context.Context, written chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case of := <-q.ready:
			q.node(ctx, of)
			select {
			case written <- struct{}{}:
			default:
			}
		}
	}
}

func (q *Queue) node(ctx context.Context, of nodeKey) {
	q.mu.Lock()
	w := q.nodes[of]
	alerts := w.alerts
	w.writing, w.held = w.waiting, len(alerts)
	w.waiting, w.alerts = map[string]*string{}, map[string]bool{}
	annotations := w.writing
	q.mu.Unlock()

	err := q.write(ctx, of.name, of.uid, annotations)

	q.mu.Lock()
	defer q.mu.Unlock()
	w.writing = nil
	switch {
	case err == nil:
		w.again = 0
		q.log.Info("alerts were written on their Node", "node", of.name, "alerts", len(alerts))
	case errors.Is(err, ErrGone):
		q.log.Info("accepted alerts were dropped because their Node is gone, or was replaced by a Node with the same name", "node", of.name, "alerts", len(alerts))
	default:
		if apierrors.IsInvalid(err) {
			q.shed(of, w, annotations, alerts, err)
		}
		if len(alerts) == 0 {
			break
		}
		q.back(of, w, annotations, alerts)
		if ctx.Err() == nil {
			q.log.Error(err, "alerts could not be written on their Node; Drydock tries again", "node", of.name, "alerts", len(alerts), "after", w.again.String())
		}
		return
	}
	for range w.held {
		<-q.places
	}
	if w.held = 0; len(w.alerts) > 0 {
		q.ready <- of
		return
	}
	delete(q.nodes, of)
}

// shed drops the newer half of the alerts in a write that the API server refused as invalid: all
// annotations of a Node together may take 256 KiB. Otherwise the same write would be refused again
// and again. The leader's next poll of Alertmanager brings back the dropped alerts that are active.
func (q *Queue) shed(of nodeKey, w *queued, annotations map[string]*string, alerts map[string]bool, err error) {
	since := map[string]time.Time{}
	for key := range alerts {
		if value := annotations[key]; value != nil {
			if a, err := remediations.DecodeAlert(key, *value); err == nil {
				since[key] = a.StartsAt
			}
		}
	}
	newest := slices.SortedFunc(maps.Keys(alerts), func(a, b string) int {
		return cmp.Or(since[b].Compare(since[a]), strings.Compare(a, b))
	})
	for _, key := range newest[:(len(newest)+1)/2] {
		delete(annotations, key)
		delete(alerts, key)
		w.held--
		<-q.places
	}
	q.log.Error(err, "alerts were dropped because their Node has no room for them; the leader's next poll of Alertmanager brings those that are active", "node", of.name, "alerts", (len(newest)+1)/2)
}

// Values that were queued meanwhile are newer, and replace those of the failed write.
func (q *Queue) back(of nodeKey, w *queued, annotations map[string]*string, alerts map[string]bool) {
	for key := range alerts {
		if w.alerts[key] {
			<-q.places // its newer state has taken a second place
		}
		w.alerts[key] = true
	}
	maps.Copy(annotations, w.waiting)
	w.waiting, w.held = annotations, 0
	w.again = min(max(2*w.again, againFirst), againLongest)
	q.clock.AfterFunc(w.again, func() { q.ready <- of })
}
