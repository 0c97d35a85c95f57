package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	kilo "drydock.dev/drydock/remediations/providers/kilo/election"
)

// inMesh runs f on a world of two locations of three nodes each: n0 leads l0, n3 leads l1.
func inMesh(t *testing.T, c *remediations.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.do(w.spread)
		f(t, w)
	})
}

func (w *world) leaderOf(where string) string {
	return at(w, func() string { return w.mesh.places[where].leader })
}

func (w *world) leaderRecordOn(node string) *remediations.Record {
	return at(w, func() *remediations.Record { return w.leaderRecords()[node] })
}

func (w *world) leaderOutcomes() (out []remediations.Outcome) {
	w.do(func() {
		for _, e := range w.mesh.ended {
			out = append(out, e.Outcome)
		}
	})
	return out
}

func (w *world) moves() (out []string) {
	w.do(func() {
		for _, m := range w.mesh.moved {
			out = append(out, m.From+">"+m.To)
		}
	})
	return out
}

func (w *world) keysOf(where string) map[string]string {
	return at(w, func() map[string]string { return w.keys(where) })
}

// requireNoLeaderTrace: nothing is left of repairs but the history.
func requireNoLeaderTrace(t *testing.T, w *world) {
	t.Helper()
	w.do(func() {
		require.Empty(t, w.leaderRecords())
		for name, n := range w.nodes {
			require.Empty(t, remediations.AlertsOn(n.Annotations), name)
			require.NotContains(t, n.Labels, remediations.PhaseLabel)
			require.False(t, n.Spec.Unschedulable)
		}
		require.Empty(t, mustLedger(w).Slots)
		require.Empty(t, mustLedger(w).Repairs, "no machine was disrupted")
		require.Empty(t, w.calls)
		require.Empty(t, w.instances[len(w.instances)-1].engine.targets)
	})
}

// TestADegradedLeaderIsReplaced is S2: n0 relays nothing any more, and its first capable sibling
// takes its place.
func TestADegradedLeaderIsReplaced(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		began := time.Now()
		w.do(func() { w.darken("n0", true) })
		require.True(t, w.until(2*time.Minute, func() bool { return !w.mesh.places["l0"].bad }))
		t.Logf("well after %s, of which %s until the alert", time.Since(began), detects)
		w.pass(5 * time.Minute)
		require.Equal(t, []string{"n0>n1"}, w.moves())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
		require.Equal(t, map[string]string{"n1": "drydock", "n2": "by hand"}, w.keysOf("l0"))
		require.Equal(t, "n3", w.leaderOf("l1"))
		requireNoLeaderTrace(t, w)
		e := remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])
		require.Len(t, e, 1)
		require.Equal(t, "l0", e[0].Location)
		require.Equal(t, "by hand", *e[0].Moves[0].Before["n0"], "what was there before is kept")
		w.do(func() {
			require.Len(t, mustLedger(w).Moves["l0"], 1)
			told := map[string]int{}
			for _, e := range w.told {
				told[e.Reason]++
			}
			for _, reason := range []string{"RepairPending", "RepairStarted", "RepairStepIssued", "RepairVerifying", "LeaderMoved", "RepairRecovered"} {
				require.LessOrEqual(t, told[reason], 1, reason)
			}
			require.Equal(t, 1, told["LeaderMoved"])
			require.Equal(t, 1, told["RepairRecovered"])
		})
	})
}

// TestMoveDoesNotWaitForAnotherPoll: the alert is posted to the Node that leads, and the leadership
// is moved within seconds.
func TestMoveDoesNotWaitForAnotherPoll(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.darken("n3", true) })
		w.pass(detects + time.Second)
		w.do(func() { w.postPlace("l1") })
		require.True(t, w.until(5*time.Second, func() bool { return w.mesh.places["l1"].leader == "n4" }))
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
		requireNoLeaderTrace(t, w)
	})
}

// TestSuccessorFailsAsWell: one further candidate is tried, and no more.
func TestSuccessorFailsAsWell(t *testing.T) {
	t.Run("the next one is not", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.mesh.members["n1"].darkLeading = true; w.darken("n0", true) })
			w.pass(12 * time.Minute)
			require.Equal(t, []string{"n0>n1", "n1>n2"}, w.moves())
			require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
			require.Equal(t, "n2", w.leaderOf("l0"))
			requireNoLeaderTrace(t, w)
		})
	})
	t.Run("nor is the next one well, and everything is put back", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			before := w.keysOf("l0")
			w.start()
			w.do(func() {
				w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].darkLeading = true, true
				w.darken("n0", true)
			})
			w.pass(20 * time.Minute)
			require.Equal(t, []string{"n0>n1", "n1>n2"}, w.moves())
			require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.leaderOutcomes())
			require.Equal(t, "n0", w.leaderOf("l0"))
			require.Equal(t, before, w.keysOf("l0"))
			r := w.leaderRecordOn("n0")
			require.Equal(t, remediations.PhaseExhausted, r.Phase)
			require.Empty(t, r.Undo)
			require.Equal(t, "Exhausted", w.nodeOf("n0").Labels[remediations.PhaseLabel])
			require.False(t, w.nodeOf("n0").Spec.Unschedulable, "a node that is well but for the mesh is not cordoned")
			require.Empty(t, w.slots(t))
			w.pass(2 * time.Hour)
			require.Len(t, w.moves(), 2, "a person must look")

			w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")); w.darken("n0", false) })
			w.pass(5 * time.Minute)
			requireNoLeaderTrace(t, w)
			require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		})
	})
	t.Run("nobody else is fit", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			before := w.keysOf("l0")
			w.start()
			w.do(func() { w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].dark = true, true; w.darken("n0", true) })
			w.pass(20 * time.Minute)
			require.Equal(t, []string{"n0>n1"}, w.moves())
			require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.leaderOutcomes())
			require.Equal(t, before, w.keysOf("l0"))
		})
	})
}

// TestPuttingBackIsRepeatedUntilItIsDone: it is repeated however often it fails, and by each new
// leader.
func TestPuttingBackIsRepeatedUntilItIsDone(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		before := w.keysOf("l0")
		w.start()
		w.do(func() {
			w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].darkLeading = true, true
			w.mesh.backFails = true
			w.darken("n0", true)
		})
		require.True(t, w.until(20*time.Minute, func() bool { return w.leaderRecords()["n0"] != nil && w.leaderRecords()["n0"].Back != nil }))
		w.pass(3 * time.Minute)
		require.NotNil(t, w.leaderRecordOn("n0").Back)
		require.Equal(t, "n2", w.leaderOf("l0"))
		w.restart(w.config)
		w.pass(3 * time.Minute)
		require.Empty(t, w.leaderOutcomes())
		w.do(func() { w.mesh.backFails = false; w.faults["key"] = []string{"lost", "written"} })
		w.pass(3 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.leaderOutcomes())
		require.Equal(t, before, w.keysOf("l0"))
		require.Empty(t, w.slots(t))
	})
}

// TestANodeThatIsGoneHoldsNoPutBack: its key was deleted with it, and the keys of the other Nodes
// are put back. An unreadable Node holds the put-back, because a person may have written a hold
// there.
func TestANodeThatIsGoneHoldsNoPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world)
		ends    []remediations.Outcome
		keys    map[string]string
	}{
		"gone":     {func(w *world) { w.leave("n1") }, []remediations.Outcome{remediations.OutcomeExhausted}, map[string]string{"n0": "by hand", "n2": "by hand"}},
		"not read": {func(w *world) { w.unreadable = "n1" }, nil, map[string]string{"n1": "drydock", "n2": "by hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
				w.start()
				w.do(func() {
					w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].dark = true, true
					w.mesh.backFails = true
					w.darken("n0", true)
				})
				require.True(t, w.until(20*time.Minute, func() bool { return w.leaderRecords()["n0"] != nil && w.leaderRecords()["n0"].Back != nil }))
				w.do(func() { c.happens(w); w.mesh.backFails = false })
				w.pass(3 * time.Minute)
				require.Equal(t, c.ends, w.leaderOutcomes())
				require.Equal(t, c.keys, w.keysOf("l0"))
			})
		})
	}
}

// TestTwoLeadersAtOnceAreReplacedOneAfterTheOther: limits.leaders.concurrent allows one at a time.
func TestTwoLeadersAtOnceAreReplacedOneAfterTheOther(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.darken("n0", true); w.darken("n3", true) })
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.leaderOutcomes())
		require.ElementsMatch(t, []string{"n0>n1", "n3>n4"}, w.moves())
		requireNoLeaderTrace(t, w)
	})
}

// TestAMemberThatIsDarkMovesNothing: only the failure of a leader is a reason for a move, and this
// member does not lead.
func TestAMemberThatIsDarkMovesNothing(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.darken("n1", true) })
		w.pass(20 * time.Minute)
		require.Empty(t, w.moves())
		requireNoLeaderTrace(t, w)
	})
}

// TestALocationIsMovedOnceInFifteenMinutes: the successor fails minutes after it became the leader.
func TestALocationIsMovedOnceInFifteenMinutes(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.darken("n0", true) })
		require.True(t, w.until(10*time.Minute, func() bool { return len(w.mesh.ended) == 1 }))
		w.do(func() { w.darken("n1", true) })
		w.pass(8 * time.Minute)
		require.Len(t, w.moves(), 1)
		require.Equal(t, remediations.ReasonCooldown, w.leaderRecordOn("n1").Hold.Reason)
		w.do(func() { w.loseLedger() }) // the records on the Nodes count as well
		w.restart(w.config)
		w.pass(4 * time.Minute)
		require.Len(t, w.moves(), 1)
		w.pass(10 * time.Minute)
		require.Equal(t, []string{"n0>n1", "n1>n2"}, w.moves())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.leaderOutcomes())
		requireNoLeaderTrace(t, w)
	})
}

// TestLeadershipMovesByItself: what is left on the former leader's node moves to the new leader's.
func TestLeadershipMovesByItself(t *testing.T) {
	t.Run("while it is held", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); w.darken("n0", true); w.darken("n2", true) })
			w.pass(2 * time.Minute)
			require.Equal(t, remediations.ReasonPaused, w.leaderRecordOn("n0").Hold.Reason)
			w.do(func() { w.edit("n0", func(n *corev1.Node) { delete(n.Annotations, kilo.LeaderKey) }) })
			require.Equal(t, "n2", w.leaderOf("l0"))
			w.pass(2 * time.Minute)
			require.Equal(t, remediations.OutcomeSuperseded, w.leaderOutcomes()[0])
			require.Empty(t, remediations.AlertsOn(w.nodeOf("n0").Annotations))
			w.pass(10 * time.Minute)
			require.Equal(t, []string{"n2>n1"}, w.moves())
			require.Equal(t, []remediations.Outcome{remediations.OutcomeSuperseded, remediations.OutcomeRecovered}, w.leaderOutcomes())
		})
	})
	t.Run("before anything was on record", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			w.start()
			w.pass(16 * time.Second)
			w.do(func() { w.darken("n0", true) })
			w.pass(detects - 5*time.Second)
			w.do(func() {
				w.lag = 6 // the cache does not show it yet
				w.edit("n0", func(n *corev1.Node) { delete(n.Annotations, kilo.LeaderKey) })
			})
			w.pass(10 * time.Minute)
			require.Empty(t, w.moves(), "n2 leads, and is well")
			requireNoLeaderTrace(t, w)
		})
	})
	t.Run("during the proof", func(t *testing.T) {
		inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.darken("n0", true) })
			require.True(t, w.until(10*time.Minute, func() bool { return w.mesh.places["l0"].leader == "n1" }))
			w.pass(10 * time.Second)
			w.do(func() { w.edit("n1", func(n *corev1.Node) { delete(n.Annotations, kilo.LeaderKey) }) })
			require.Equal(t, "n2", w.leaderOf("l0"))
			w.pass(10 * time.Minute)
			require.Equal(t, []remediations.Outcome{remediations.OutcomeSuperseded}, w.leaderOutcomes())
			requireNoLeaderTrace(t, w)
		})
	})
}
