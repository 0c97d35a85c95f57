package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// fullOf gives the node so many pods that a drain takes a while.
func fullOf(pods int) func(w *world) {
	return func(w *world) { w.machines["n0"].pods.left = pods }
}

// inMidDrain is the scenario of a node whose drain has evicted some of its pods.
func inMidDrain(t *testing.T, w *world) {
	t.Helper()
	w.do(func() { fullOf(300)(w) })
	w.during(t, "drain")
	require.True(t, w.until(time.Minute, func() bool { return len(w.evictions) >= 3 }))
}

// TestDrainEndsWithinAPass: everything that holds a drain ends it within a pass. The drain
// continues from there when the hold ends.
func TestDrainEndsWithinAPass(t *testing.T) {
	pause := func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true" }
	for name, c := range map[string]struct {
		hold, release func(w *world)
		within        time.Duration
		reason        remediations.Reason
	}{
		"a pause":     {func(w *world) { w.hold("n0", pause) }, func(w *world) { w.unhold("n0") }, time.Second, remediations.ReasonPaused},
		"break-glass": {func(w *world) { w.breakGlass("n0") }, func(w *world) { w.unhold("n0") }, time.Second, remediations.ReasonPaused},
		"a silence": {
			func(w *world) { w.machines["n0"].silenced = true }, func(w *world) { w.machines["n0"].silenced = false },
			16 * time.Second, remediations.ReasonSilenced,
		},
		"no Alertmanager": {
			func(w *world) { w.replicas = [2]replicaState{{dead: true}, {dead: true}} }, func(w *world) { w.repairEverything() },
			16 * time.Second, remediations.ReasonAlertUnconfirmed,
		},
		"looks that hang": {
			func(w *world) { w.lookTakes = 10 * time.Minute }, func(w *world) { w.repairEverything() },
			31 * time.Second, remediations.ReasonAlertUnconfirmed,
		},
		"a storm": {
			func(w *world) {
				for _, n := range []string{"n1", "n2", "n3", "n4"} {
					w.ail(n, 1)
				}
			}, func(w *world) {
				for _, n := range []string{"n1", "n2", "n3", "n4"} {
					w.heal(n)
				}
			}, time.Second, remediations.ReasonFleetUnhealthy,
		},
		"leases that nobody renews": {
			func(w *world) { w.leasesFrozen = time.Now().Add(-leaseFor) }, func(w *world) { w.leasesFrozen = time.Time{} },
			31 * time.Second, remediations.ReasonBlind,
		},
		"leases that cannot be counted": {
			func(w *world) { w.always["heartbeats"], w.blindSince = "lost", time.Now() }, func(w *world) { clear(w.always) },
			31 * time.Second, remediations.ReasonBlind,
		},
		"a ledger that somebody spoilt": {
			func(w *world) { w.kept, w.ledger = w.ledger, map[string]string{"v": "9"}; w.ledgerRV++ }, func(w *world) { w.ledger = w.kept; w.ledgerRV++ },
			16 * time.Second, remediations.ReasonRecordMalformed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				inMidDrain(t, w)
				w.do(func() { c.hold(w) })
				w.pass(c.within)
				before := w.evicted()
				w.pass(time.Minute)
				require.Equal(t, before, w.evicted(), "nothing is evicted any more")
				r := w.recordOf("n0")
				require.Equal(t, remediations.PhasePending, r.Phase)
				require.Equal(t, c.reason, r.Hold.Reason)
				require.True(t, w.nodeOf("n0").Spec.Unschedulable, "the cordon stays: it goes on in a moment")
				w.do(func() { c.release(w) })
				require.True(t, w.until(15*time.Minute, func() bool { return len(w.evictions) == 300 }), "it goes on where it was: %d", w.evicted())
				w.pass(20 * time.Minute)
				require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Equal(t, []string{"reboot:1", "drain:1", "replace:1"}, w.ended[0].Steps.Texts(), "it is one attempt")
			})
		})
	}
}

// TestASlowPollInterruptsNoDrain: the poll interval may be as long as an answer stays valid. A
// drain under way requests an earlier answer, so that it arrives in time.
func TestASlowPollInterruptsNoDrain(t *testing.T) {
	for name, c := range map[string]struct{ stale, takes time.Duration }{
		"answers at once":             {30 * time.Second, 0},
		"answers that take a while":   {30 * time.Second, 8 * time.Second},
		"answers that are soon stale": {5 * time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			config := wholeConfig()
			config.MaxStaleness = c.stale
			inWorld(t, config, 6, func(t *testing.T, w *world) {
				w.pollEvery = c.stale
				w.do(func() { w.machines["n0"].pods = podsOf{left: 5, blocked: true} })
				w.during(t, "drain")
				w.do(func() { w.lookTakes = c.takes })
				w.pass(time.Minute)
				intent := w.recordOf("n0").Intent
				w.pass(4 * time.Minute)
				require.Equal(t, intent, w.recordOf("n0").Intent, "it was put back, and issued anew")
				w.do(func() { w.lookTakes = 10 * time.Minute })
				require.True(t, w.until(c.stale+time.Second, func() bool { return w.record("n0").Phase == remediations.PhasePending }), "the control: nobody answers")
				require.Equal(t, remediations.ReasonAlertUnconfirmed, w.recordOf("n0").Hold.Reason)
			})
		})
	}
}

// TestADrainThatIsInterruptedHasItsTimeOnce: the time that the drain has already taken counts, and
// the time of the hold does not.
func TestADrainThatIsInterruptedHasItsTimeOnce(t *testing.T) {
	for name, interrupts := range map[string]bool{"interrupted every three minutes": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.machines["n0"].pods = podsOf{left: 5, blocked: true} })
				w.during(t, "drain")
				worked := time.Duration(0)
				for range 40 {
					began := time.Now()
					over := w.until(3*time.Minute, func() bool { return w.record("n0") == nil || w.record("n0").Step.Name != "drain" })
					worked += time.Since(began)
					if over {
						break
					}
					if interrupts {
						w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")) })
						w.pass(20 * time.Minute)
						require.Equal(t, remediations.ReasonPaused, w.recordOf("n0").Hold.Reason)
						w.do(func() { w.unhold("n0") })
						require.True(t, w.until(time.Minute, func() bool { return w.record("n0").Phase == remediations.PhaseActing }))
					}
				}
				require.InDelta(t, 10*time.Minute, worked, float64(30*time.Second))
			})
		})
	}
}

// TestUncordonInMidDrainCancelsTheRepair: an uncordon is a person's decision, and ends the repair.
func TestUncordonInMidDrainCancelsTheRepair(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		inMidDrain(t, w)
		w.do(func() {
			w.machines["n0"].cordonedBy = ""
			w.edit("n0", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		})
		w.pass(2 * time.Second)
		before := w.evicted()
		require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
		require.Equal(t, remediations.ByPerson, w.ended[0].By)
		require.Empty(t, w.slots(t))
		w.pass(2 * time.Hour)
		require.Equal(t, before, w.evicted())
		require.Equal(t, []string{"reboot"}, w.callsOf(), "and no other begins for this alert")
	})
}

// TestCancelInMidDrainStopsEvictionsAndUncordons: nothing more is evicted, and Drydock's own cordon
// is removed.
func TestCancelInMidDrainStopsEvictionsAndUncordons(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		inMidDrain(t, w)
		w.do(func() { cancel(w) })
		w.pass(2 * time.Second)
		before := w.evicted()
		w.pass(time.Hour)
		require.Equal(t, before, w.evicted())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
		require.False(t, w.nodeOf("n0").Spec.Unschedulable)
		require.Empty(t, w.slots(t))
	})
}

// TestDrainThatTakesTooLong: the plan decides what follows, except for a node that has nothing to
// lose.
func TestDrainThatTakesTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		ready, goesOn bool
		calls         []string
		end           remediations.Outcome
	}{
		"stop":                  {true, false, []string{"reboot"}, remediations.OutcomeExhausted},
		"continue":              {true, true, []string{"reboot", "replace"}, remediations.OutcomeRecovered},
		"stop, but it is dead":  {false, false, []string{"reboot", "replace"}, remediations.OutcomeRecovered},
		"continue, and is dead": {false, true, []string{"reboot", "replace"}, remediations.OutcomeRecovered},
	} {
		t.Run(name, func(t *testing.T) {
			conf := wholeConfig()
			conf.Policies[0].Plan[1].ContinueOnTimeout = c.goesOn
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.do(func() { w.machines["n0"].pods = podsOf{left: 5, blocked: true} })
				w.during(t, "drain")
				w.pass(5 * time.Second)
				require.Contains(t, w.recordOf("n0").Note, "default/web", "who blocks it is on record")
				require.Len(t, w.toldOf("RepairBlocked"), 1)
				w.do(func() {
					if c.ready { // but its alert continues to fire
						w.machines["n0"].broken, w.machines["n0"].sick = 9, 0
						w.report(w.machines["n0"])
					}
				})
				w.pass(9 * time.Minute)
				require.Equal(t, []string{"reboot"}, w.callsOf())
				w.pass(31 * time.Minute)
				require.Zero(t, w.evicted())
				require.Equal(t, c.calls, w.callsOf())
				require.Equal(t, []remediations.Outcome{c.end}, w.outcomes())
				require.Len(t, w.toldOf("RepairBlocked"), 1)
				require.Empty(t, w.slots(t))
			})
		})
	}
}

// TestDrainHeldByABudgetContinuesWhenItIsReleased: the record no longer shows that the drain is
// blocked.
func TestDrainHeldByABudgetContinuesWhenItIsReleased(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() { w.machines["n0"].pods = podsOf{left: 5, blocked: true} })
		w.during(t, "drain")
		w.pass(5 * time.Minute)
		require.Zero(t, w.evicted())
		w.do(func() { w.machines["n0"].pods.blocked = false })
		w.pass(5 * time.Second)
		require.Empty(t, w.recordOf("n0").Note)
		w.pass(15 * time.Minute)
		require.Equal(t, 5, w.evicted())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}

// TestDrainThatCannotBeDone: an impossible drain ends at once, as if its time had run out, because
// retrying it for half an hour would not help.
func TestDrainThatCannotBeDone(t *testing.T) {
	for name, goesOn := range map[string]bool{"stop": false, "continue": true} {
		t.Run(name, func(t *testing.T) {
			conf := wholeConfig()
			conf.Policies[0].Plan[1].ContinueOnTimeout = goesOn
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.do(func() { w.machines["n0"].pods = podsOf{left: 5, blocked: true} })
				w.during(t, "drain")
				w.do(func() { // it is Ready again, and its alert continues to fire
					m := w.machines["n0"]
					m.broken, m.sick, m.pods.refused = 9, 0, true
					w.report(m)
				})
				w.pass(10 * time.Second)
				require.Zero(t, w.evicted())
				if goesOn {
					require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
					return
				}
				require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
				require.Contains(t, w.ended[0].Why, "default/alone has no controller")
			})
		})
	}
}

// TestDrainUsesItsStepsOptionForPodsWithoutAController: the drain uses the option of the policy's
// step in the current configuration.
func TestDrainUsesItsStepsOptionForPodsWithoutAController(t *testing.T) {
	for name, c := range map[string]struct {
		option remediations.WithoutController
		end    remediations.Outcome
	}{
		"refuse": {remediations.WithoutControllerRefuse, remediations.OutcomeExhausted},
		"evict":  {remediations.WithoutControllerEvict, remediations.OutcomeRecovered},
	} {
		t.Run(name, func(t *testing.T) {
			conf := wholeConfig()
			conf.Policies[0].Plan[1].WithoutController = c.option
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.do(func() {
					w.machines["n0"].pods = podsOf{left: 5, blocked: true, refused: c.option != remediations.WithoutControllerRefuse}
				})
				w.during(t, "drain")
				w.do(func() { // it is Ready again, and its alert continues to fire
					m := w.machines["n0"]
					m.broken, m.sick, m.pods.refused, m.pods.blocked = 9, 0, true, false
					w.report(m)
				})
				w.pass(15 * time.Minute)
				require.Equal(t, []remediations.Outcome{c.end}, w.outcomes())
			})
		})
	}
}
