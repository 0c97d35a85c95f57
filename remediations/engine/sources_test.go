package engine

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

func (i *instance) blindBy(cause string) bool {
	return testutil.ToFloat64(i.engine.metrics.blind.WithLabelValues(cause)) == 1
}

// TestALookThatNeverEndsIsGivenUp: the next poll looks again.
func TestALookThatNeverEndsIsGivenUp(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.lookTakes = 9 * time.Minute })
		w.pass(20 * time.Second) // a look has begun
		w.do(func() { w.lookTakes = 0; w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		require.NotEmpty(t, w.toldOf("AlertmanagerDown"), "it counts as no answer")
	})
}

// TestAWatchThatSaysNothingIsSaidAndHolds: Drydock sees by its own writes that the cache of Nodes is behind.
func TestAWatchThatSaysNothingIsSaidAndHolds(t *testing.T) {
	c := modelConfig()
	c.Policies[0].For = 2 * time.Minute
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(time.Minute)
		require.False(t, i.blindBy(blindNodes), "the control")
		w.do(func() { i.still = true; w.ail("n0", 1) })
		w.pass(5 * time.Minute)
		require.Zero(t, w.callCount())
		require.True(t, i.blindBy(blindNodes))
		require.Contains(t, at(w, func() string { return w.book().Status.Blind }), "the watch of Nodes is behind")
		w.do(func() { i.still = false })
		w.pass(20 * time.Second)
		require.False(t, i.blindBy(blindNodes))
		require.Equal(t, 1, w.callCount(), "the alert's time did not begin again with each poll")
	})
}

// TestANodeThatTakesNoAlertIsSaid, and does not hold the others.
func TestANodeThatTakesNoAlertIsSaid(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(time.Minute)
		require.False(t, i.blindBy(blindWrites), "the control")
		w.do(func() {
			adopt := i.engine.Adopt
			i.engine.Adopt = func(n *corev1.Node, a remediations.Alert) bool { return n.Name == "n0" || adopt(n, a) }
			w.ail("n0", 1)
		})
		w.pass(2 * time.Minute)
		require.True(t, i.blindBy(blindWrites))
		require.False(t, i.blindBy(blindNodes))
		require.Len(t, w.toldOf("NodeUnwritable"), 1)
		w.do(func() { w.ail("n1", 1) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 && w.calls[0].node == "n1" }))
	})
}

// TestAnAlertmanagerWithAClockThatIsAheadHidesNoCure: its times say nothing, and those of the other one do.
func TestAnAlertmanagerWithAClockThatIsAheadHidesNoCure(t *testing.T) {
	for name, ahead := range map[string][2]bool{"one of two": {true, false}, "none, the control": {}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.replicas[0].ahead, w.replicas[1].ahead = ahead[0], ahead[1] })
				sickNode(t, w)
				w.pass(5 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestEachSourceHasTheTimeOfItsLastAnswer for who wants to know its age.
func TestEachSourceHasTheTimeOfItsLastAnswer(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		w.pass(5 * time.Minute)
		for _, source := range sources {
			at := testutil.ToFloat64(i.engine.metrics.sources.WithLabelValues(source))
			require.InDelta(t, float64(time.Now().Unix()), at, 300, source)
		}
	})
}
