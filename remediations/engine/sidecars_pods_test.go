package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestHeldSidecarIsLeftAlone: requirements S0-4, S0-5 and S0-16. The sidecars beside it are
// approved. The held one is approved as soon as the hold ends.
func TestHeldSidecarIsLeftAlone(t *testing.T) {
	inGates(t, sidecarConfig(), 3, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			w.pod(podName(1)).hold("SeiNode sei/p01 has the adopted workflow state-sync")
			w.closeOn("n0")
		})
		w.pass(2 * time.Hour)
		require.Equal(t, 2, w.approvalCount())
		w.do(func() {
			require.Empty(t, w.gates.pods[podName(1)].tasks)
			require.Empty(t, w.sidecarRecords(), "what waits is on no record")
		})
		require.Len(t, w.eventsOf("RepairHeld"), 1, "told once")
		w.do(func() { w.pod(podName(1)).hold("") })
		require.True(t, w.until(30*time.Second, w.allOpen))
		w.pass(2 * time.Minute)
		requireNoTrace(t, w)
	})
}

// TestOnly503IsActedUpon: requirement S0-2.
func TestOnly503IsActedUpon(t *testing.T) {
	for name, c := range map[string]struct {
		how   func(*gated)
		calls int
	}{
		"503":         {func(*gated) {}, 1},
		"no answer":   {func(g *gated) { g.hide(true) }, 0},
		"another one": {func(g *gated) { g.failing = true }, 0},
		"200":         {func(g *gated) { g.letGo() }, 0},
		"held":        {func(g *gated) { g.hold("SeiNode sei/p00 is Initializing") }, 0},
		"silenced":    {func(g *gated) { g.silenced = true }, 0},
		"inhibited":   {func(g *gated) { g.inhibited = true }, 0},
		"not sent":    {func(g *gated) { g.quiet = true }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.closeOn("n0")
					c.how(w.pod(podName(0)))
					w.postPod(podName(0)) // whatever a forged post claims
				})
				w.pass(10 * time.Minute)
				require.Equal(t, c.calls, w.approvalCount())
				w.do(func() { require.Empty(t, w.sidecarRecords()) })
			})
		})
	}
}

// TestWedgedSidecarIsLeftToAPerson: requirements S0-7 and S0-13. After three attempts, each with a
// task of its own, only a person can act. The sidecar delays no other one, and its node is not
// cordoned.
func TestWedgedSidecarIsLeftToAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		mood  providerMood
		apart time.Duration
	}{
		"it opens never": {providerMood{}, time.Minute}, "it refuses": {providerMood{refuse: true}, 0},
		"it hangs": {providerMood{after: time.Hour}, time.Minute}, "nothing comes of it": {providerMood{idle: true}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 2, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.pod(podName(0)).wedged = true
					w.gates.mood = c.mood
					w.pod(podName(0)).close()
				})
				w.pass(6 * time.Hour)
				w.do(func() {
					for i, a := range w.gates.approvals {
						require.Equal(t, "n0", a.node)
						if i > 0 {
							require.InDelta(t, c.apart, a.at.Sub(w.gates.approvals[i-1].at), float64(3*time.Second))
						}
					}
					require.Len(t, w.gates.tasks, 3, "each attempt its own task")
					require.False(t, w.nodes["n0"].Spec.Unschedulable)
				})
				require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.sidecarOutcomes())
				require.Equal(t, remediations.PhaseExhausted, w.sidecarOf(podName(0)).Phase)

				w.do(func() { w.gates.mood = providerMood{}; w.pod(podName(1)).close() })
				w.pass(time.Minute)
				require.True(t, at(w, func() bool { return w.pod(podName(1)).open }), "the one beside it is approved")

				w.do(func() {
					w.pod(podName(0)).wedged = false
					w.edit("n0", edit(remediations.ResetKey, "true"))
				})
				w.pass(3 * time.Minute)
				require.True(t, at(w, w.allOpen), "a person has looked, and it begins anew")
				requireNoTrace(t, w)
			})
		})
	}
}

// TestExhaustedSidecarThatIsReadyIsForgotten: its repair ends without a reset, whether Drydock or a
// person approved the sidecar.
func TestExhaustedSidecarThatIsReadyIsForgotten(t *testing.T) {
	for name, repair := range map[string]func(w *world){
		"ready":       func(w *world) { w.pod(podName(0)).letGo() },
		"another pod": func(w *world) { w.pod(podName(0)).wedged = false; w.replacePod(podName(0), "n0") },
		"moved":       func(w *world) { w.pod(podName(0)).wedged = false; w.replacePod(podName(0), "n3") },
		"gone":        func(w *world) { delete(w.gates.pods, podName(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.pod(podName(0)).wedged = true; w.closeOn("n0") })
				w.pass(10 * time.Minute)
				require.Equal(t, remediations.PhaseExhausted, w.sidecarOf(podName(0)).Phase)
				w.do(func() { repair(w) })
				w.pass(4 * time.Minute)
				requireNoTrace(t, w)
				require.True(t, at(w, w.allOpen))
			})
		})
	}
}

// TestPodThatMovesInMidRepair: its repair ends on the old node, and begins again on the new one.
func TestPodThatMovesInMidRepair(t *testing.T) {
	for name, to := range map[string]string{"to another node": "n3", "on its node": "n0"} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.pod(podName(0)).wedged = true; w.closeOn("n0"); w.postPod(podName(0)) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.gates.approvals) == 1 }))
				w.pass(10 * time.Second)
				w.do(func() { w.pod(podName(0)).wedged = false; w.replacePod(podName(0), to) })
				require.True(t, w.until(40*time.Second, w.allOpen))
				w.pass(3 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeSuperseded, remediations.OutcomeRecovered}, w.sidecarOutcomes())
				w.do(func() {
					require.Equal(t, to, w.gates.approvals[1].node)
					require.NotEqual(t, w.gates.approvals[0].uid, w.gates.approvals[1].uid)
				})
				requireNoTrace(t, w)
			})
		})
	}
}

// TestNodeThatIsGoneTakesItsSidecarsAlong: its pods are on other nodes, and are approved there.
func TestNodeThatIsGoneTakesItsSidecarsAlong(t *testing.T) {
	inGates(t, sidecarConfig(), 3, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.gates.mood.after = 20 * time.Second; w.closeOn("n0") })
		require.True(t, w.until(time.Minute, func() bool { return len(w.gates.approvals) == 1 }))
		w.do(func() { w.gates.mood = providerMood{}; w.leave("n0") })
		require.True(t, w.until(time.Minute, w.allOpen))
		w.pass(3 * time.Minute)
		requireNoTrace(t, w)
	})
}

// TestPollFindsThePodsNode: an alert that no post brought is written on the Node that hosts the pod
// according to the API server. If the API server does not answer, only that alert is delayed.
func TestPollFindsThePodsNode(t *testing.T) {
	inGates(t, sidecarConfig(), 40, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			w.gates.hostsHang = true
			w.closeOn("n0")
			w.ail("n1", 1)
		})
		require.True(t, w.until(30*time.Second, func() bool { return len(w.calls) == 1 }), "repairs of nodes go on")
		w.pass(2 * time.Minute)
		require.Zero(t, w.approvalCount())
		require.Less(t, at(w, func() int { return w.gates.hostsAsks }), 25, "one for each poll, not for each pod")
		w.do(func() { w.gates.hostsHang, w.gates.hostsAsks = false, 0 })
		require.True(t, w.until(2*time.Minute, w.allOpen))
		w.pass(3 * time.Minute)
		w.do(func() { require.Less(t, w.gates.hostsAsks, 60, "one that is on its Node is not asked for again") })
	})
}

// TestAlertOfAPodThatDoesNotExist: an alert of a pod that does not exist is on no Node.
func TestAlertOfAPodThatDoesNotExist(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.pod(podName(0)).close(); w.pod(podName(0)).node = "" })
		w.pass(5 * time.Minute)
		requireNoTrace(t, w)
		w.do(func() { w.pod(podName(0)).node = "ghost" })
		w.pass(5 * time.Minute)
		requireNoTrace(t, w)
	})
}

// TestPodThatMovesOffAHeldNode: its alert names no node, stays one alert, and does not wait for the
// hold's end.
func TestPodThatMovesOffAHeldNode(t *testing.T) {
	for name, hold := range map[string]func(*corev1.Node){
		"paused": edit(remediations.PauseKey, "true"), "with a record that nobody can read": edit(remediations.NodeRepairKey, `{"v":2}`),
	} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.edit("n0", hold); w.closeOn("n0"); w.postPod(podName(0)) })
				w.pass(3 * time.Minute)
				require.Empty(t, w.gates.approvals, "its node is held")
				w.do(func() { w.replacePod(podName(0), "n3") })
				require.True(t, w.until(2*time.Minute, w.allOpen), "the pod is where nothing holds it")
			})
		})
	}
}
