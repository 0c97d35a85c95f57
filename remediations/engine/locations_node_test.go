package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestALeaderAndItsNodeExcludeEachOther: the repair that began later waits. This holds for the
// Nodes of the old and of the new leader.
func TestALeaderAndItsNodeExcludeEachOther(t *testing.T) {
	t.Run("the node of the leader is first", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			w.start()
			w.pass(16 * time.Second)
			w.do(func() {
				w.machines["n0"].bootTakes = 50 * time.Second
				w.darken("n0", true)
				w.ail("n0", 3)
				w.machines["n0"].kubelet = true
			})
			require.True(t, w.until(2*time.Minute, func() bool { return len(w.calls) == 1 }))
			require.True(t, at(w, func() bool { return w.record("n0").Phase.InFlight() }))
			w.pass(2 * time.Minute)
			require.Empty(t, w.moves(), "n0 is under repair, which may well cure this, too")
		})
	})
	t.Run("the leader is first", func(t *testing.T) {
		for _, sick := range []string{"n0", "n1"} {
			t.Run(sick, func(t *testing.T) {
				inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
					w.start()
					w.do(func() { w.darken("n0", true) })
					require.True(t, w.until(2*time.Minute, func() bool { return len(w.mesh.moved) == 1 }))
					w.do(func() {
						w.mesh.members[sick].darkLeading = true
						w.ail(sick, 1)
						w.post(sick, remediations.StatusFiring)
					})
					w.pass(45 * time.Second)
					require.Zero(t, w.callCount(), "its leadership is being moved")
					require.True(t, w.until(15*time.Minute, func() bool { return len(w.calls) == 1 }), "its turn comes")
				})
			})
		}
	})
	t.Run("a node under repair is not chosen", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.machines["n1"].bootTakes = 5 * time.Minute; w.ail("n1", 1) })
			require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
			w.do(func() { w.darken("n0", true) })
			w.pass(4 * time.Minute)
			require.Equal(t, []string{"n0>n2"}, w.moves())
		})
	})
}

// TestPersonsHoldBetweenIntentAndMoveStopsTheMove: the last check reads the Nodes of the old and
// the new leader as they are.
func TestPersonsHoldBetweenIntentAndMoveStopsTheMove(t *testing.T) {
	pause := func(node string) func(w *world) {
		return func(w *world) { w.hold(node, edit(remediations.PauseKey, "true")) }
	}
	for name, c := range map[string]struct {
		say    func(w *world)
		reason remediations.Reason
	}{
		"the leader is paused":    {pause("n0"), remediations.ReasonPaused},
		"the successor is paused": {pause("n1"), remediations.ReasonPaused},
		"the leader is excluded": {func(w *world) {
			w.hold("n0", func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" })
		}, remediations.ReasonExcluded},
		"the successor's break-glass": {func(w *world) { w.breakGlass("n1") }, remediations.ReasonPaused},
		"the successor is cordoned":   {func(w *world) { w.edit("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }) }, remediations.ReasonLeaderHeld},
		"cancel": {func(w *world) {
			id := w.leaderRecords()["n0"].ID
			w.cancelled[id] = time.Now()
			w.edit("n0", edit(remediations.CancelKey, id))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.mesh.blindly, w.mesh.mood.before = true, 5*time.Second; w.darken("n0", true) })
				require.True(t, w.until(2*time.Minute, func() bool {
					r := w.leaderRecords()["n0"]
					return r != nil && r.Phase == remediations.PhaseActing
				}))
				w.do(func() { c.say(w) })
				w.pass(8 * time.Second)
				require.Empty(t, w.moves())
				if c.reason != "" {
					r := w.leaderRecordOn("n0")
					require.Equal(t, remediations.PhasePending, r.Phase)
					require.Equal(t, c.reason, r.Hold.Reason)
					require.Empty(t, r.Done, "the attempt is not spent")
					require.Empty(t, r.Moves)
					require.Empty(t, r.Undo)
					require.Empty(t, w.slots(t))
				}
				w.do(func() { w.mesh.blindly, w.mesh.mood.before = false, 0 })
				w.pass(4 * time.Minute)
				switch name {
				case "cancel":
					require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.leaderOutcomes())
					require.NotContains(t, w.nodeOf("n0").Annotations, remediations.CancelKey)
				case "the leader is paused", "the leader is excluded":
					require.Empty(t, w.moves())
					w.do(func() { w.unhold("n0") })
					w.pass(4 * time.Minute)
					require.Equal(t, []string{"n0>n1"}, w.moves(), "when that ends it goes on as if nothing had been tried")
				default:
					require.Equal(t, []string{"n0>n2"}, w.moves(), "the other one is chosen")
				}
			})
		})
	}
}

// TestAStormOfNodesStillHasItsLeaderMoved: a leader that relays nothing makes many nodes look
// unhealthy.
func TestAStormOfNodesStillHasItsLeaderMoved(t *testing.T) {
	c := leaderConfig()
	c.Limits.Unhealthy.Value = 40
	inMesh(t, c, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for _, n := range []string{"n2", "n4", "n5"} {
				w.ail(n, 1)
			}
			w.darken("n0", true)
		})
		require.True(t, w.until(3*time.Minute, func() bool { return len(w.mesh.moved) > 0 }))
		require.Equal(t, []string{"n0>n1"}, w.moves())
		require.Zero(t, w.callCount(), "the breaker is open")
	})
}

// TestAnIntentThatIsOldMovesNothing: nor does it cost an attempt.
func TestAnIntentThatIsOldMovesNothing(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.mesh.mood.before = 12 * time.Second; w.darken("n0", true) })
		require.True(t, w.until(2*time.Minute, func() bool {
			r := w.leaderRecords()["n0"]
			return r != nil && r.Hold != nil && r.Hold.Reason == remediations.ReasonCallWithheld
		}))
		w.pass(10 * time.Minute)
		require.Empty(t, w.moves())
		require.Empty(t, w.leaderOutcomes())
		require.Equal(t, "n0", w.leaderOf("l0"))
		w.do(func() { w.mesh.mood.before = 0 })
		w.pass(5 * time.Minute)
		require.Equal(t, []string{"n0>n1"}, w.moves())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
		require.Equal(t, []string{"promote-leader:1"}, at(w, func() []string { return w.mesh.ended[0].Steps.Texts() }))
	})
}

func TestAMovesOutcomeSurvivesAStop(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.mesh.mood.after = 2 * time.Second; w.darken("n0", true) })
		require.True(t, w.until(2*time.Minute, func() bool { return len(w.mesh.moved) == 1 }))
		w.do(w.last().cancel)
		w.pass(5 * time.Second)
		r := w.leaderRecordOn("n0")
		require.Equal(t, remediations.PhaseVerifying, r.Phase)
		require.Equal(t, remediations.CallAccepted, r.Intent.Outcome)
		w.startWith(w.config, 0)
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
		requireNoLeaderTrace(t, w)
	})
}
