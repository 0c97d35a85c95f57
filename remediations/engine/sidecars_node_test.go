package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestSidecarAndItsNodeExcludeEachOther: the one whose repair began later waits for the other.
func TestSidecarAndItsNodeExcludeEachOther(t *testing.T) {
	t.Run("the node is first", func(t *testing.T) {
		inGates(t, sidecarConfig(), 2, func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.ail("n0", 1); w.machines["n0"].bootTakes = 5 * time.Minute })
			require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
			require.False(t, at(w, w.allOpen), "the reboot closed the gates")
			w.pass(4 * time.Minute)
			require.Zero(t, w.approvalCount())
			w.pass(4 * time.Minute)
			require.Equal(t, 2, w.approvalCount())
			require.True(t, at(w, w.allOpen))
		})
	})
	t.Run("a sidecar is first", func(t *testing.T) {
		inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.pod(podName(0)).wedged = true; w.closeOn("n0") })
			require.True(t, w.until(time.Minute, func() bool { return len(w.gates.approvals) == 1 }))
			w.do(func() { w.ail("n0", 1) })
			w.pass(45 * time.Second)
			require.Zero(t, w.callCount())
			require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }), "it is exhausted, and the node's turn comes")
		})
	})
}

// TestPauseBetweenIntentAndApprovalStopsIt: the last check reads the Node as it is.
func TestPauseBetweenIntentAndApprovalStopsIt(t *testing.T) {
	for name, say := range map[string]func(w *world){
		"paused":      func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) },
		"excluded":    func(w *world) { w.hold("n0", func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" }) },
		"break-glass": func(w *world) { w.breakGlass("n0") },
		"cancel": func(w *world) {
			id := w.sidecarRecords()["n0|"+podKey(podName(0))].ID
			w.cancelled[id] = time.Now()
			w.edit("n0", edit(remediations.CancelKey, id))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.gates.mood.before = 5 * time.Second; w.closeOn("n0") })
				require.True(t, w.until(time.Minute, func() bool { return len(w.sidecarRecords()) == 1 }))
				w.do(func() { say(w) })
				w.pass(15 * time.Minute)
				require.Zero(t, w.approvalCount())
				if name == "cancel" {
					require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.sidecarOutcomes())
					require.NotContains(t, w.nodeOf("n0").Annotations, remediations.CancelKey)
					return
				}
				require.Equal(t, remediations.ReasonPaused, refusedFor(w).Hold.Reason)
				w.do(func() { w.gates.mood.before = 0; w.unhold("n0") })
				w.pass(4 * time.Minute)
				require.True(t, at(w, w.allOpen), "when that ends it goes on")
			})
		})
	}
}

// TestAnApprovalThatWasWithheldCostsNoAttempt: with a single attempt, the approval is made when
// nothing withholds it any more.
func TestAnApprovalThatWasWithheldCostsNoAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		holds, lets func(w *world)
		reason      remediations.Reason
	}{
		"paused":                   {func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }, func(w *world) { w.unhold("n0") }, remediations.ReasonPaused},
		"the API server is silent": {func(w *world) { w.always["node"] = "lost" }, func(w *world) { clear(w.always) }, remediations.ReasonBlind},
		"the sidecar is slow":      {func(w *world) { w.gates.mood.before = 12 * time.Second }, func(*world) {}, remediations.ReasonCallWithheld},
		"nothing (the control)":    {func(*world) {}, func(*world) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conf := sidecarConfig()
			conf.Policies[1].Plan[0].Attempts = 1
			inGates(t, conf, 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.gates.mood.before = 5 * time.Second
					if c.reason == remediations.ReasonCallWithheld {
						c.holds(w)
					}
					w.closeOn("n0")
				})
				require.True(t, w.until(time.Minute, func() bool { return len(w.sidecarRecords()) == 1 }))
				w.do(func() { c.holds(w) })
				if c.reason == "" {
					w.pass(time.Minute)
					require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.sidecarOutcomes())
					return
				}
				require.True(t, w.until(30*time.Second, func() bool {
					for _, r := range w.sidecarRecords() {
						return r.Phase == remediations.PhasePending
					}
					return false
				}))
				r := w.sidecarOf(podName(0))
				require.Equal(t, c.reason, r.Hold.Reason)
				require.Empty(t, r.Done)
				w.pass(10 * time.Minute)
				require.Zero(t, w.approvalCount())
				require.Empty(t, w.sidecarOutcomes(), "it is not exhausted by attempts that nobody made")
				w.do(func() { w.gates.mood.before = 0; c.lets(w) })
				w.pass(5 * time.Minute)
				require.Equal(t, 1, w.approvalCount())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.sidecarOutcomes())
				requireNoTrace(t, w)
			})
		})
	}
}

// refusedFor returns the record. A hold for the label Excluded gets the same reason as the other
// holds.
func refusedFor(w *world) *remediations.Record {
	r := w.sidecarOf(podName(0))
	if r.Hold != nil && r.Hold.Reason == remediations.ReasonExcluded {
		r.Hold.Reason = remediations.ReasonPaused
	}
	return r
}

// TestFleetThatIsInAStormStillApproves: the limits of a disruptive repair do not apply to an
// approval.
func TestFleetThatIsInAStormStillApproves(t *testing.T) {
	c := sidecarConfig()
	c.Windows = []remediations.Window{{From: remediations.WallTime{Hour: 12}, To: remediations.WallTime{Hour: 13}, Location: time.UTC}} // worlds begin at midnight
	inGates(t, c, 2, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			for _, n := range nodeNames[1:] {
				w.ail(n, 1)
			}
			w.closeOn("n0")
		})
		require.True(t, w.until(40*time.Second, w.allOpen))
		require.Zero(t, w.callCount())
	})
}

// TestThirtySidecarsDoNotCountAsStorm: with thirty exhausted sidecars, and as many that wait, a
// sick node is rebooted.
func TestThirtySidecarsDoNotCountAsStorm(t *testing.T) {
	inGates(t, sidecarConfig(), 0, func(t *testing.T, w *world) {
		for i := range 30 {
			w.host(podName(i), nodeNames[i%5])
			w.pod(podName(i)).wedged = i%2 == 0
			w.pod(podName(i)).close()
			if i%2 == 1 {
				w.pod(podName(i)).hold("SeiNode is paused")
			}
		}
		w.start()
		w.pass(10 * time.Minute)
		w.do(func() {
			require.Len(t, w.sidecarRecords(), 15)
			require.Empty(t, mustLedger(w).Status.Breakers)
			require.Empty(t, mustLedger(w).Status.Exhausted, "nor is their policy ever stopped")
			w.ail("n5", 1)
		})
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}

// TestProviderOfSidecarsIsTakenAway: a repair under way ends, and what is left of its alert is
// removed after that.
func TestProviderOfSidecarsIsTakenAway(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.pod(podName(0)).wedged = true; w.closeOn("n0") })
		require.True(t, w.until(time.Minute, func() bool { return len(w.gates.approvals) == 1 }))
		without := *w.config
		without.SidecarProviders = nil
		w.restart(&without)
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.sidecarOutcomes())
		require.Equal(t, 1, w.approvalCount())
		w.do(func() { w.pod(podName(0)).letGo() })
		w.pass(10 * time.Minute)
		requireNoTrace(t, w)
	})
}

// TestResetOfANodeLeavesItsSidecarsAlone: the reset forgets the node's exhausted repair, not an
// approval under way.
func TestResetOfANodeLeavesItsSidecarsAlone(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(time.Hour, func() bool { return w.nodes["n0"].Spec.Unschedulable }))
		w.do(func() { w.heal("n0"); w.pod(podName(0)).letGo() })
		w.pass(5 * time.Minute)
		w.do(func() { w.pod(podName(0)).wedged = true; w.pod(podName(0)).close() })
		before := w.approvalCount()
		require.True(t, w.until(time.Minute, func() bool { return len(w.gates.approvals) > before }))
		w.pass(time.Second)
		r := w.sidecarOf(podName(0))
		w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
		w.pass(2 * time.Second)
		require.Nil(t, w.recordOf("n0"))
		require.Equal(t, r.ID, w.sidecarOf(podName(0)).ID)
	})
}

// TestOneResetForgetsAllThatRanOutOfSteps: the reset of a Node ends the exhausted repair of the
// node and that of its sidecar.
func TestOneResetForgetsAllThatRanOutOfSteps(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.pod(podName(0)).wedged = true; w.pod(podName(0)).close() })
		w.pass(10 * time.Minute)
		r := w.sidecarOf(podName(0))
		require.Equal(t, remediations.PhaseExhausted, r.Phase)
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(time.Hour, func() bool { return w.nodes["n0"].Spec.Unschedulable }))
		spent := w.recordOf("n0")
		require.Equal(t, remediations.PhaseExhausted, spent.Phase)
		w.do(func() { w.heal("n0"); w.edit("n0", edit(remediations.ResetKey, "true")) })
		w.pass(5 * time.Second)
		r = w.recordOf("n0")
		require.True(t, r == nil || r.ID != spent.ID, "the alert may not be over yet: %+v", r)
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		again := w.sidecarOf(podName(0))
		require.True(t, again == nil || again.ID != r.ID, "a new one may have begun: %+v", again)
	})
}

// TestSidecarIsTriedAgainAfterItsAlertLapsed: the start of the alert jumps when its source pauses.
// The gate was closed all the time, so the start of its container closed the gate, however long ago
// that was.
func TestSidecarIsTriedAgainAfterItsAlertLapsed(t *testing.T) {
	for name, opened := range map[string]bool{"the gate was closed all the time": false, "the gate was open, and somebody closed it": true} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.pod(podName(0)).wedged = true; w.closeOn("n0") })
				w.pass(30 * time.Minute)
				require.Equal(t, remediations.PhaseExhausted, w.sidecarOf(podName(0)).Phase)
				tried := w.approvalCount()
				if opened {
					w.do(func() { w.pod(podName(0)).letGo() })
					w.pass(time.Minute)
					w.do(func() { g := w.pod(podName(0)); g.open, g.since, g.byHand = false, time.Now(), true })
				} else {
					w.do(func() { w.pod(podName(0)).quiet = true })
					w.pass(6 * time.Minute)
				}
				require.Nil(t, w.sidecarOf(podName(0)), "the alert has ended")
				w.do(func() { g := w.pod(podName(0)); g.quiet, g.wedged, g.lapsed = false, false, time.Now() })
				w.pass(5 * time.Minute)
				if opened {
					require.Equal(t, tried, w.approvalCount(), "somebody closed it")
					return
				}
				require.Equal(t, tried+1, w.approvalCount())
				require.True(t, at(w, w.allOpen))
			})
		})
	}
}

// TestExhaustedSidecarIsTriedAgainOnceItsContainerIsRestarted: the restart is in the same pod. It
// closes the gate of a new process, not of the one that the attempts were made on.
func TestExhaustedSidecarIsTriedAgainOnceItsContainerIsRestarted(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.pod(podName(0)).wedged = true; w.closeOn("n0") })
		w.pass(10 * time.Minute)
		require.Equal(t, remediations.PhaseExhausted, w.sidecarOf(podName(0)).Phase)
		tried := w.approvalCount()
		w.do(func() { w.pod(podName(0)).wedged = false })
		w.pass(5 * time.Minute)
		require.Equal(t, tried, w.approvalCount(), "the same container is left to a person")
		w.do(func() { w.pod(podName(0)).close() })
		w.pass(5 * time.Minute)
		require.Equal(t, tried+1, w.approvalCount())
		require.True(t, at(w, w.allOpen))
		require.Nil(t, w.sidecarOf(podName(0)))
	})
}
