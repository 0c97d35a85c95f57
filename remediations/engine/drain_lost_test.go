package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestDrainOfALeaderThatIsNoMore: a former leader evicts nothing after it has lost leadership, and
// the next leader continues its drain.
func TestDrainOfALeaderThatIsNoMore(t *testing.T) {
	for name, dies := range map[string]bool{"it lost its lead": false, "it died": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				inMidDrain(t, w)
				first := w.last()
				w.do(func() {
					first.dead = dies
					first.cancel()
				})
				w.pass(time.Second)
				before := w.evicted()
				w.pass(time.Minute)
				require.Equal(t, before, w.evicted())
				deadline := w.recordOf("n0").Deadline
				require.Equal(t, remediations.PhaseActing, w.recordOf("n0").Phase)
				w.start()
				w.pass(10 * time.Second)
				require.Greater(t, w.evicted(), before)
				require.Equal(t, deadline, w.recordOf("n0").Deadline, "its time goes on, too")
				w.pass(20 * time.Minute)
				require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestDrainOfANodeThatIsGone: a drain does not touch another Node with the same name, or a Node
// without Drydock's keys.
func TestDrainOfANodeThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world)
	}{
		"it goes":                {func(w *world) { w.leave("n0") }},
		"it is registered again": {func(w *world) { w.register("n0"); w.heal("n0") }},
		"somebody strips its record": {func(w *world) {
			w.heal("n0")
			w.edit("n0", func(n *corev1.Node) { clear(n.Annotations); delete(n.Labels, remediations.PhaseLabel) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.lies.blindDrains = true })
				inMidDrain(t, w)
				w.do(func() { c.happens(w) })
				w.pass(2 * time.Second)
				before := w.evicted()
				w.pass(5 * time.Minute)
				require.Equal(t, before, w.evicted())
				require.Empty(t, w.slots(t))
				require.True(t, at(w, func() bool { return w.toldSuperseded("n0") }), "people hear that the repair is no more, whatever it left")
			})
		})
	}
}

// TestDrainThatDidNotBeginIsNotOver: a drain was held right before it began, or its state could not
// be read then. It is tried again, and no node is replaced that was not emptied.
func TestDrainThatDidNotBeginIsNotOver(t *testing.T) {
	for name, c := range map[string]struct {
		lag int
		say func(w *world)
	}{
		"a pause that the cache does not show yet": {99, func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }},
		"a Node that cannot be read for a while":   {0, func(w *world) { w.always["node"] = "lost" }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.beforeDrain = func() { w.lag = c.lag; c.say(w) } })
				w.during(t, "drain")
				w.pass(time.Minute)
				require.Zero(t, w.evicted())
				require.Equal(t, []string{"reboot"}, w.callsOf())
				w.do(func() { w.lag = 0; clear(w.always); w.unhold("n0") })
				w.pass(15 * time.Minute)
				require.Equal(t, 2, w.evicted())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestDrainStopsWhileTheNodesCannotBeListed: a drain does not continue while the Nodes cannot be
// listed, because then no guard can decide.
func TestDrainStopsWhileTheNodesCannotBeListed(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		inMidDrain(t, w)
		w.do(func() { w.always["nodes"] = "lost" })
		w.pass(16 * time.Second)
		before := w.evicted()
		w.pass(time.Minute)
		require.Equal(t, before, w.evicted())
		w.do(func() { clear(w.always) })
		w.pass(20 * time.Minute)
		require.Equal(t, 300, w.evicted())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}
