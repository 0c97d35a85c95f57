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
	// maxQueued bounds the alerts that were accepted and are not on their Nodes yet, about 1.5 KB
	// each, at most 6: more than one for every node of 5,000. If the process dies they are lost.
	// The leader's poll of Alertmanager then queues those that are still active.
	maxQueued = 8192
	// writesAtOnce is as many as keep an API server busy. More would only wait there, ahead of a
	// repair's own writes and of the leader's Lease.
	writesAtOnce = 16
	// againFirst is the wait before a failed write is tried again, againLongest the longest wait
	// while it still fails.
	againFirst   = time.Second
	againLongest = 30 * time.Second
	// drainFor is how long the queue is still written when the process stops.
	drainFor = 6 * time.Second
)

// ErrQueueFull: the sender must send the alert again.
var ErrQueueFull = errors.New("the queue of alerts that wait to be written on their Nodes is full")

// errStopping: the sender must send the alert again, to another process.
var errStopping = errors.New("this Drydock is stopping, and takes no more alerts")

// ErrGone: the Node is gone, or another Node has its name.
var ErrGone = errors.New("the Node is gone, or another Node has its name")

// AnnotationWriter writes annotations on the Node of that name if its UID matches; a nil value
// removes the key. ErrGone: there is no such Node.
type AnnotationWriter func(ctx context.Context, name string, uid types.UID, annotations map[string]*string) error

// Queue holds the alerts that were accepted and are not on their Nodes yet. All that waits for one
// Node becomes one write, with the newest state of each alert. It is safe for concurrent use, and a
// manager.Runnable.
type Queue struct {
	write  AnnotationWriter
	clock  clock.WithDelayedExecution
	log    logr.Logger
	places chan struct{} // one element for each alert that waits or is being written
	ready  chan nodeKey  // the nodes that have something to write, each once

	refused prometheus.Counter

	mu    sync.Mutex
	nodes map[nodeKey]*queued
	stop  chan struct{}
}

// nodeKey identifies one Node, and no other Node of that name.
type nodeKey struct {
	name string
	uid  types.UID
}

// queued is what waits to be written on one Node. A nil value removes the key.
type queued struct {
	// waiting has alerts' places, writing the places that are held during a write.
	waiting, writing map[string]*string
	// alerts are the keys of waiting that have a place.
	alerts map[string]bool
	held   int
	// due: it is in ready, or is being written, or a timer brings it back.
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

// Put queues the annotations of one alert: its value under its key, and the keys that must go to
// make room on the Node. It waits for a place in the queue until ctx ends. It implements
// Writer.
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

// Offer is Put without the wait; false: the queue is full.
func (q *Queue) Offer(n *corev1.Node, annotations map[string]*string) (taken bool, err error) {
	select {
	case <-q.stop:
		return false, errStopping
	default:
	}
	of, key := nodeKey{n.Name, n.UID}, alertIn(annotations)
	if q.merge(of, key, annotations, false) {
		return true, nil // a newer state of an alert that waits needs no room
	}
	select {
	case q.places <- struct{}{}:
	default:
		return false, nil
	}
	return q.merge(of, key, annotations, true), nil
}

// alertIn returns the key of the alert among the annotations.
func alertIn(annotations map[string]*string) (key string) {
	for k, v := range annotations {
		if v != nil {
			key = k
		}
	}
	return key
}

// merge adds the annotations to those that wait for the Node; false: the alert needs a place, and
// has none.
func (q *Queue) merge(of nodeKey, key string, annotations map[string]*string, placed bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.nodes[of]
	known := w != nil && w.alerts[key]
	switch {
	case known && placed:
		<-q.places // another post brought the same alert meanwhile
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
		q.ready <- of // never blocks: each node is in it once, and has a place
	}
	return true
}

// Waiting returns the key's value after the queue is written, if a write of the key waits; nil: the
// key will be gone.
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

// Start writes until ctx ends, and then for a while what is left. From then on the queue accepts
// nothing more.
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
		q.log.Info("alerts that were accepted are not on their Nodes; the leader's next poll of Alertmanager brings those that are active", "alerts", left)
	}
	return nil
}

// work writes the ready Nodes one after the other, and signals written after each.
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

// node writes all that waits for one Node.
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
		q.log.Info("alerts were accepted for a Node that is gone, or was replaced by another one of that name", "node", of.name, "alerts", len(alerts))
	default:
		if apierrors.IsInvalid(err) {
			q.shed(of, w, annotations, alerts, err)
		}
		if len(alerts) == 0 {
			break
		}
		q.back(of, w, annotations, alerts)
		if ctx.Err() == nil {
			q.log.Error(err, "alerts could not be written on their Node; they are tried again", "node", of.name, "alerts", len(alerts), "after", w.again.String())
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

// shed drops the newer half of the alerts that the API server calls invalid together. The Node has
// no room for them: all of its annotations together may take 256 KiB. The same write would be
// refused for ever. The leader's poll of Alertmanager brings back the alerts that are active.
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

// back queues a failed write again, and tries the Node again after a while. Newer values that have
// come since replace those of the failed write.
func (q *Queue) back(of nodeKey, w *queued, annotations map[string]*string, alerts map[string]bool) {
	for key := range alerts {
		if w.alerts[key] {
			<-q.places // its newer state has a place of its own
		}
		w.alerts[key] = true
	}
	maps.Copy(annotations, w.waiting)
	w.waiting, w.held = annotations, 0
	w.again = min(max(2*w.again, againFirst), againLongest)
	q.clock.AfterFunc(w.again, func() { q.ready <- of })
}
