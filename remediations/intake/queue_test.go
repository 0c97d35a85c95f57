package intake_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/lab/atonce"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
)

func newQueue(t *testing.T, write intake.AnnotationWriter) *intake.Queue {
	t.Helper()
	q, _ := measuredQueue(t, write)
	return q
}

func measuredQueue(t *testing.T, write intake.AnnotationWriter) (*intake.Queue, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	q, err := intake.NewQueue(write, clock.RealClock{}, reg, logr.Discard())
	require.NoError(t, err)
	return q, reg
}

// slowAPI is an API server that needs some time for each write. nodes has each Node's annotations,
// by the Node's name.
type slowAPI struct {
	takes  time.Duration
	writes atonce.Count

	patches atomic.Int64

	mu    sync.Mutex
	fails func(node string) error
	limit int // in bytes, for a Node's annotations; zero: none
	nodes map[string]map[string]string
	busy  map[string]bool
	twice bool
}

func (a *slowAPI) write(ctx context.Context, name string, _ types.UID, annotations map[string]*string) error {
	a.writes.Enter()
	defer a.writes.Leave()
	a.mu.Lock()
	a.twice = a.twice || a.busy[name]
	a.busy[name] = true
	sent := maps.Clone(annotations)
	a.mu.Unlock()
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, name)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.patches.Add(1)
	if a.fails != nil {
		if err := a.fails(name); err != nil {
			return err
		}
	}
	after := map[string]string{}
	maps.Copy(after, a.nodes[name])
	for k, v := range sent {
		if delete(after, k); v != nil {
			after[k] = *v
		}
	}
	if a.limit > 0 && remediations.OwnBytes(after) > a.limit {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), name, nil)
	}
	a.nodes[name] = after
	return nil
}

func (a *slowAPI) on(name string) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.nodes[name])
}

// inQueue runs f while a queue writes to a slowAPI, and then stops the queue.
func inQueue(t *testing.T, f func(t *testing.T, q *intake.Queue, api *slowAPI, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := &slowAPI{takes: 100 * time.Millisecond, nodes: map[string]map[string]string{}, busy: map[string]bool{}}
		q, reg := measuredQueue(t, api.write)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Start(ctx) }()
		stop := sync.OnceFunc(func() {
			cancel()
			require.NoError(t, <-ended)
		})
		f(t, q, api, stop)
		require.Equal(t, api.takes > time.Minute, valuesOf(t, reg)["drydock_alerts_queued"] > 0, "each place was given back")
		stop()
		require.False(t, api.twice, "two writes of one Node were under way at once")
	})
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

func put(t *testing.T, q *intake.Queue, node, key, value string) {
	t.Helper()
	require.NoError(t, q.Put(t.Context(), nodeNamed(node), map[string]*string{key: &value}))
}

// TestAllThatWaitsForANodeIsOneWriteOfItsNewestState: an alert that comes during the write is
// written after it.
func TestAllThatWaitsForANodeIsOneWriteOfItsNewestState(t *testing.T) {
	inQueue(t, func(t *testing.T, q *intake.Queue, api *slowAPI, _ func()) {
		put(t, q, "n1", "a", "firing")
		synctest.Wait()
		require.Equal(t, 1, api.writes.Now(), "the first is written at once")
		gone := "x"
		require.NoError(t, q.Put(t.Context(), nodeNamed("n1"), map[string]*string{"b": &gone, "old": nil}))
		put(t, q, "n1", "b", "firing")
		put(t, q, "n1", "b", "resolved")
		put(t, q, "n1", "a", "resolved")
		value, waits := q.Waiting(nodeNamed("n1"), "a")
		require.True(t, waits)
		require.Equal(t, "resolved", *value, "what waits is newer than what is being written")
		value, waits = q.Waiting(nodeNamed("n1"), "old")
		require.True(t, waits)
		require.Nil(t, value)
		_, waits = q.Waiting(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "another"}}, "a")
		require.False(t, waits, "another Node of that name")
		time.Sleep(150 * time.Millisecond)
		require.Equal(t, map[string]string{"a": "firing"}, api.on("n1"))
		time.Sleep(time.Second)
		require.Equal(t, map[string]string{"a": "resolved", "b": "resolved"}, api.on("n1"))
		require.EqualValues(t, 2, api.patches.Load())
		_, waits = q.Waiting(nodeNamed("n1"), "a")
		require.False(t, waits)
	})
}

// TestTheQueueIsBounded: when the queue is full, a further alert waits for a place until its
// context ends, and is then refused. No accepted alert is lost.
func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 8192
		api := &slowAPI{takes: 100 * time.Millisecond, nodes: map[string]map[string]string{}, busy: map[string]bool{}}
		q, reg := measuredQueue(t, api.write)
		for i := range places {
			put(t, q, fmt.Sprint("n", i), "a", "firing")
		}
		post, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		value := "firing"
		require.ErrorIs(t, q.Put(post, nodeNamed("one-more"), map[string]*string{"a": &value}), intake.ErrQueueFull)
		put(t, q, "n7", "a", "resolved") // a newer state takes no place
		require.Equal(t, map[string]float64{"drydock_alerts_queued": places, "drydock_alerts_queue_full_total": 1}, valuesOf(t, reg))

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Start(ctx) }()
		put(t, q, "one-more", "a", "firing") // waits until there is a place
		time.Sleep(time.Minute)
		require.EqualValues(t, places+1, api.patches.Load())
		require.Equal(t, 16, api.writes.Most())
		require.Equal(t, map[string]string{"a": "resolved"}, api.on("n7"))
		require.Equal(t, map[string]string{"a": "firing"}, api.on("one-more"))
		require.Zero(t, valuesOf(t, reg)["drydock_alerts_queued"])
		stop()
		require.NoError(t, <-ended)
	})
}

func valuesOf(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		out[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return out
}

// TestAWriteThatFailsIsTriedAgain: meanwhile no other Node waits. A write for a Node that is gone
// is not repeated.
func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	inQueue(t, func(t *testing.T, q *intake.Queue, api *slowAPI, _ func()) {
		api.fails = func(node string) error {
			return map[string]error{"refused": errors.New("a webhook refuses it"), "gone": fmt.Errorf("writing on Node gone: %w", intake.ErrGone)}[node]
		}
		for i := range 3 {
			put(t, q, "refused", fmt.Sprint("a", i), "firing")
		}
		put(t, q, "gone", "a", "firing")
		put(t, q, "another", "a", "firing")
		put(t, q, "n1", "a", "firing")
		synctest.Wait()
		put(t, q, "refused", "a1", "resolved") // while the older state is being written
		time.Sleep(10 * time.Second)
		require.Equal(t, map[string]string{"a": "firing"}, api.on("n1"))
		put(t, q, "refused", "a2", "resolved")
		for _, node := range []string{"gone", "another"} {
			_, waits := q.Waiting(nodeNamed(node), "a")
			require.False(t, waits, node)
		}
		tried := api.patches.Load()
		time.Sleep(time.Minute)
		require.LessOrEqual(t, api.patches.Load(), tried+3, "seldom")
		api.mu.Lock()
		api.fails = nil
		api.mu.Unlock()
		time.Sleep(time.Minute)
		require.Equal(t, map[string]string{"a0": "firing", "a1": "resolved", "a2": "resolved"}, api.on("refused"))
	})
}

// TestTheQueueIsWrittenWhenTheProcessStops: the queue is written for a limited time, and accepts no
// more alerts.
func TestTheQueueIsWrittenWhenTheProcessStops(t *testing.T) {
	inQueue(t, func(t *testing.T, q *intake.Queue, api *slowAPI, stop func()) {
		for i := range 400 {
			put(t, q, fmt.Sprint("n", i), "a", "firing")
		}
		began := time.Now()
		stop()
		require.Len(t, api.nodes, 400)
		require.Less(t, time.Since(began), 3*time.Second, "it ends when all is written")
		value := "firing"
		require.Error(t, q.Put(t.Context(), nodeNamed("n1"), map[string]*string{"a": &value}))
	})
	inQueue(t, func(t *testing.T, q *intake.Queue, api *slowAPI, stop func()) {
		api.takes = time.Hour
		put(t, q, "n1", "a", "firing")
		began := time.Now()
		stop()
		require.Equal(t, 6*time.Second, time.Since(began), "a process that must stop stops")
		require.Empty(t, api.nodes)
	})
}

// TestAnIntakeKnowsWhatWaits: for an alert that is still queued, its end is new, and the same alert
// again is not.
func TestAnIntakeKnowsWhatWaits(t *testing.T) {
	api := &slowAPI{nodes: map[string]map[string]string{}, busy: map[string]bool{}}
	q, in := newQueue(t, api.write), newIntake(t, nil) // nothing is written until the queue runs
	n := nodeNamed("n1")
	in.Node, in.Writer, in.Room = func(string) *corev1.Node { return n }, q, intake.NewRoom()
	began := time.Now().Add(-time.Minute)
	record := func(status string) intake.Result {
		result, err := in.Record(t.Context(), about("n1"), status, began)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, intake.Unchanged, record("resolved"), "control: nothing is known of it")
	require.Equal(t, intake.Accepted, record("firing"))
	require.Equal(t, intake.Unchanged, record("firing"))
	require.Equal(t, intake.Accepted, record("resolved"))
	require.Equal(t, intake.Unchanged, record("resolved"))
}

// recording returns a function that records alert number i about n1. The intake's cache stays
// unchanged.
func recording(t *testing.T, q *intake.Queue) func(i int) intake.Result {
	t.Helper()
	in, n := newIntake(t, nil), nodeNamed("n1")
	in.Node, in.Writer, in.Room, in.Now = func(string) *corev1.Node { return n }, q, intake.NewRoom(), time.Now
	return func(i int) intake.Result {
		l := about("n1")
		l["alertname"] = fmt.Sprintf("A%03d", i)
		result, err := in.Record(t.Context(), l, "firing", time.Unix(1700000000+int64(i), 0))
		require.NoError(t, err)
		return result
	}
}

// TestAlertsThatWaitForANodeCountForAsLongAsTheyWait: even if the Node cannot be written for
// minutes, the queued alerts for the Node stay within its limit.
func TestAlertsThatWaitForANodeCountForAsLongAsTheyWait(t *testing.T) {
	inQueue(t, func(t *testing.T, q *intake.Queue, api *slowAPI, _ func()) {
		api.fails = func(string) error { return errors.New("the API server is away") }
		record, results := recording(t, q), map[intake.Result]int{}
		for i := range 3 * remediations.MaxAlertsPerNode {
			results[record(i)]++
			time.Sleep(time.Second)
		}
		require.Equal(t, map[intake.Result]int{intake.Accepted: remediations.MaxAlertsPerNode, intake.NodeFull: 2 * remediations.MaxAlertsPerNode}, results)
		api.mu.Lock()
		api.fails = nil
		api.mu.Unlock()
		time.Sleep(time.Minute)
		require.Len(t, remediations.AlertsOn(api.on("n1")), remediations.MaxAlertsPerNode)
		require.Equal(t, intake.Accepted, record(1000), "the control: what was written long ago and the cache does not show gives its place back")
		time.Sleep(time.Second)
	})
}

// TestAlertsWithoutRoomOnTheNodeAreDropped: the API server refuses every write that makes a Node's
// annotations too long. The oldest alerts are written, and the others do not block them.
func TestAlertsWithoutRoomOnTheNodeAreDropped(t *testing.T) {
	const posted = 40
	inQueue(t, func(t *testing.T, q *intake.Queue, api *slowAPI, _ func()) {
		record := recording(t, q)
		require.Equal(t, intake.Accepted, record(0))
		time.Sleep(time.Second)
		api.mu.Lock()
		api.limit = 10 * remediations.OwnBytes(api.nodes["n1"])
		api.mu.Unlock()
		for i := 1; i < posted; i++ {
			require.Equal(t, intake.Accepted, record(i))
		}
		time.Sleep(10 * time.Minute)
		written := remediations.AlertsOn(api.on("n1"))
		require.GreaterOrEqual(t, len(written), 5, "at least half of what there is room for")
		for i, a := range written[:5] {
			require.Equal(t, fmt.Sprintf("A%03d", i), a.Name)
		}
		api.mu.Lock()
		api.limit = 1
		api.mu.Unlock()
		require.Equal(t, intake.Accepted, record(posted))
		time.Sleep(time.Minute)
		require.Len(t, remediations.AlertsOn(api.on("n1")), len(written), "an alert for which there is no room at all")
	})
}
