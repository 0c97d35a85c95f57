package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func TestMain(m *testing.M) { soak.Histories(m) }

func every() int { return soak.Every() }

// inBubble runs f in a bubble with its own time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	soak.InBubble(t, f)
}

// inWorld runs f on its own world, and then ends all processes of the world.
func inWorld(t *testing.T, c *remediations.Config, nodes int, f func(t *testing.T, w *world)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		w := newWorld(c, nodes)
		defer w.close()
		f(t, w)
		require.Empty(t, w.violated())
	})
}

func (w *world) close() {
	w.do(w.endAll)
	time.Sleep(10 * time.Minute) // everything that hangs ends by then
	synctest.Wait()
}

// endAll kills all processes. The world is locked.
func (w *world) endAll() {
	for _, i := range w.instances {
		i.dead = true
		i.cancel()
	}
}

// do changes the world from outside, as nature or a person does.
func (w *world) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) violated() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation
}

// pass lets time pass, in the bubble.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// until lets time pass until a condition holds. It returns false if the condition never held.
func (w *world) until(atMost time.Duration, so func() bool) bool {
	for end := time.Now().Add(atMost); ; w.pass(time.Second) {
		met := false
		w.do(func() { met = so() })
		if met || time.Now().After(end) {
			return met
		}
	}
}

// outcomes are the outcomes of the repairs that ended, oldest first.
func (w *world) outcomes() []remediations.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []remediations.Outcome
	for _, e := range w.ended {
		out = append(out, e.Outcome)
	}
	return out
}

func (w *world) slots(t testing.TB) []ledger.Slot {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := ledger.Decode(w.ledger)
	require.NoError(t, err)
	return l.Slots
}

// at returns f's result, read while the world is locked.
func at[T any](w *world, f func() T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f()
}

func (w *world) callCount() int { return at(w, func() int { return len(w.calls) }) }

// callTo, nodeOf and recordOf read the world from outside, while its engines run.
func (w *world) callTo(i int) string { return at(w, func() string { return w.calls[i].node }) }

func (w *world) nodeOf(name string) *corev1.Node {
	return at(w, func() *corev1.Node { return w.nodes[name] })
}

func (w *world) recordOf(name string) *remediations.Record {
	return at(w, func() *remediations.Record { return w.record(name) })
}
