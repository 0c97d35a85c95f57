package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// breaker returns the cluster's breaker in the ledger. If the ledger has none, it is closed.
func (w *world) breaker() ledger.Breaker {
	return at(w, func() ledger.Breaker {
		if l := w.book(); l != nil {
			return l.Status.Breakers[ledger.ScopeCluster]
		}
		return ledger.Breaker{}
	})
}

func (w *world) untilBreaker(t *testing.T, state ledger.BreakerState, atMost time.Duration) {
	t.Helper()
	for end := time.Now().Add(atMost); w.breaker().State != state; w.pass(time.Second) {
		require.True(t, time.Now().Before(end), "the breaker is %q and not %q", w.breaker().State, state)
	}
}

// openedBy brings the world to the point where a storm of these nodes, which stay Ready, has opened
// the cluster's breaker.
func (w *world) openedBy(t *testing.T, names ...string) {
	t.Helper()
	w.start()
	w.pass(16 * time.Second)
	w.do(func() {
		for _, n := range names {
			w.breakDown(n, 9)
			w.post(n, remediations.StatusFiring)
		}
	})
	w.untilBreaker(t, ledger.BreakerOpen, time.Minute)
}

// TestBreakerDoesNotMoveWhileDrydockIsBlind: an alert whose state is unknown has not ended, and
// blind time is not calm time.
func TestBreakerDoesNotMoveWhileDrydockIsBlind(t *testing.T) {
	all := []string{"n0", "n1", "n2", "n3"}
	for name, c := range map[string]struct {
		blind func(w *world)
		calls bool
	}{
		"no Alertmanager answers": {blind: func(w *world) { w.replicas = [2]replicaState{{dead: true}, {dead: true}} }},
		"the Watchdog is gone": {blind: func(w *world) {
			w.replicas = [2]replicaState{{noWatchdog: true, empty: true}, {noWatchdog: true, empty: true}}
		}},
		"kube-state-metrics": {blind: func(w *world) { w.blindBy = "DrydockSourceDown"; w.quiet(all[1:]...) }},
		"the ledger":         {blind: func(w *world) { w.always["load"], w.always["save"] = "lost", "lost"; w.quiet(all[1:]...) }},
		"the fleet is empty": {blind: func(w *world) { w.always["nodes"] = "empty"; w.quiet(all[1:]...) }},
		"the control":        {blind: func(w *world) { w.quiet(all[1:]...) }, calls: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.openedBy(t, all...)
				w.do(func() { c.blind(w) })
				w.pass(30 * time.Minute)
				require.Equal(t, c.calls, w.callCount() > 0)
				if c.calls {
					return
				}
				require.Equal(t, ledger.BreakerOpen, w.breaker().State)
				w.do(func() { w.repairEverything(); clear(w.always); w.quiet(all[1:]...) })
				w.pass(100 * time.Second)
				require.Equal(t, ledger.BreakerOpen, w.breaker().State, "the calm has lasted for less than limits.stormCooldown")
				require.Zero(t, w.callCount(), "one of the four alerts is back")
				w.pass(5 * time.Minute)
				require.Positive(t, w.callCount(), "and the breaker goes on from where it was")
			})
		})
	}
}

// TestAStormThatBeganUnseenIsSeenBeforeAnythingBegins: a pass may begin while the leases are too
// old to judge by, and find during the pass that they are fresh. Until then it has counted no
// storm.
func TestAStormThatBeganUnseenIsSeenBeforeAnythingBegins(t *testing.T) {
	for name, storm := range map[string][]string{"a storm": {"n1", "n2", "n3"}, "the control": nil} {
		t.Run(name, func(t *testing.T) {
			conf := wholeConfig()
			conf.Policies[0].Plan = conf.Policies[0].Plan[1:] // a drain, which needs no provider's answer
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.leasesFrozen = time.Now() })
				w.pass(time.Minute)
				w.do(func() {
					w.hold("n0", edit(remediations.PauseKey, "true"))
					for _, n := range append(storm, "n0") {
						w.breakDown(n, 9)
						w.post(n, remediations.StatusFiring)
					}
				})
				w.pass(5 * time.Minute)
				w.do(func() { w.leasesFrozen = time.Time{}; w.in(6*time.Second, func() { w.unhold("n0") }) }) // between two reads of the leases
				w.pass(time.Minute)
				require.Equal(t, storm != nil, w.breaker().State == ledger.BreakerOpen)
				require.Equal(t, storm == nil, w.evicted() > 0)
				if storm != nil {
					require.Nil(t, w.recordOf("n0").Intent)
				}
			})
		})
	}
}

// TestBreakerDoesNotCloseWhileLeasesAreUnknown: no alert fires, so no repair requests the leases,
// but the breaker does. If all kubelets are silent, or that is unknown, a fleet without alerts is
// not calm.
func TestBreakerDoesNotCloseWhileLeasesAreUnknown(t *testing.T) {
	all := []string{"n0", "n1", "n2", "n3"}
	for name, c := range map[string]struct {
		blind  func(w *world)
		closes bool
	}{
		"no lease is renewed":         {blind: func(w *world) { w.leasesFrozen = time.Now() }},
		"the leases cannot be listed": {blind: func(w *world) { w.always["heartbeats"] = "lost" }},
		"there are no leases":         {blind: func(w *world) { w.always["heartbeats"] = "empty" }},
		"the control":                 {blind: func(*world) {}, closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.openedBy(t, all...)
				w.do(func() { c.blind(w); w.quiet(all...) })
				w.pass(30 * time.Minute)
				if c.closes {
					require.Empty(t, w.breaker().State)
					return
				}
				require.Equal(t, ledger.BreakerOpen, w.breaker().State)
				w.do(func() { w.repairEverything(); clear(w.always) })
				w.pass(100 * time.Second)
				require.Equal(t, ledger.BreakerOpen, w.breaker().State, "the calm has been seen for less than limits.stormCooldown")
				w.pass(10 * time.Minute)
				require.Empty(t, w.breaker().State, "and the breaker goes on from where it was")
			})
		})
	}
}

// TestLeasesThatFailedAreListedUntilTheyAreThere: Drydock is not blind for longer than the leases
// are unavailable, although nothing waits for them any more.
func TestLeasesThatFailedAreListedUntilTheyAreThere(t *testing.T) {
	for name, lose := range map[string]func(w *world){
		"they cannot be listed": func(w *world) { w.always["heartbeats"], w.blindSince = "lost", time.Now() },
		"none is renewed":       func(w *world) { w.leasesFrozen = time.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				i := w.start()
				w.do(func() { lose(w) })
				w.pass(2 * time.Minute)
				w.do(func() { w.breakDown("n0", 1) })
				blind := func() float64 {
					return at(w, func() float64 { return testutil.ToFloat64(i.engine.metrics.blind.WithLabelValues(blindLeases)) })
				}
				w.pass(5 * time.Minute)
				require.InDelta(t, 1, blind(), 0)
				w.do(func() { w.heal("n0"); w.post("n0", remediations.StatusResolved) })
				w.pass(5 * time.Minute)
				require.Nil(t, w.recordOf("n0"))
				require.InDelta(t, 1, blind(), 0)
				w.do(func() { w.repairEverything(); clear(w.always); w.blindSince = time.Time{} })
				w.pass(time.Minute)
				require.Zero(t, blind())
			})
		})
	}
}

// TestPassThatComesToSeeCountsTheStorm: the pass began blind, and reads during the pass that the
// leases are fresh.
func TestPassThatComesToSeeCountsTheStorm(t *testing.T) {
	for name, ill := range map[string]int{"a storm": 18, "the control": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, ctx := settled(t, 20, 0)
				now := e.Clock.Now()
				e.heartbeats = &signs.Heartbeats{ReadAt: now.Add(-time.Second), Nodes: 20, Stale: 20}
				e.word.AskedAt = now
				p := &pass{Engine: e, ctx: ctx, now: now, next: now.Add(idle)}
				firing := map[string]time.Time{}
				for _, n := range e.roster.Nodes() {
					if ill > 1 || n.Name == "n0" {
						firing[n.Name] = now
					}
				}
				e.roster.Fire(firing)
				p.fleet = e.roster.Fleet(e.ledger, p.blind(), now)
				require.Empty(t, p.fleet.Breakers, "blind")
				p.readHeartbeats()
				require.Empty(t, e.heartbeats.Blind())
				require.Equal(t, ill > 1, p.fleet.Breakers[ledger.ScopeCluster].State == ledger.BreakerOpen)
			})
		})
	}
}

// quiet ends the alerts of machines, and their faults.
func (w *world) quiet(names ...string) {
	for _, n := range names {
		w.heal(n)
	}
}

// onTrial brings the world to the point where n0 is the trial of a half-open breaker, and n1 waits
// for its end.
func (w *world) onTrial(t *testing.T) {
	t.Helper()
	w.start()
	w.pass(16 * time.Second)
	w.do(func() {
		for _, n := range []string{"n0", "n1", "n2", "n3"} {
			w.ail(n, 9)
		}
		w.machines["n0"].since = time.Now().Add(-time.Minute)
	})
	w.untilBreaker(t, ledger.BreakerOpen, time.Minute)
	w.do(func() { w.heal("n2"); w.heal("n3") })
	require.True(t, w.until(10*time.Minute, func() bool { return len(w.calls) == 1 }))
	require.Equal(t, "n0", w.callTo(0))
	require.Equal(t, w.recordOf("n0").ID, w.breaker().Trial)
}

// TestTrialThatIsGoneGivesItsBreakerBack: however the trial ends, the next node is tried after
// another stormCooldown.
func TestTrialThatIsGoneGivesItsBreakerBack(t *testing.T) {
	pending := func(w *world) bool { return w.record("n0") != nil && w.record("n0").Phase == remediations.PhasePending }
	reset := func(w *world) {
		w.edit("n0", edit(remediations.NodeRepairKey, "{}"))
		w.in(5*time.Second, func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
	}
	for name, c := range map[string]struct {
		when func(w *world) bool
		goes func(w *world)
	}{
		"its Node is deleted while it is Pending":          {pending, func(w *world) { w.leave("n0") }},
		"its Node is registered again while it is Pending": {pending, func(w *world) { w.register("n0") }},
		"its Node is registered again while it is tried":   {nil, func(w *world) { w.register("n0") }},
		"its record is spoilt and reset while Pending":     {pending, reset},
		"its record is spoilt and reset while tried":       {nil, reset},
		"a person cancels it": {nil, func(w *world) {
			w.cancelled[w.record("n0").ID] = time.Now()
			w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID))
		}},
		"a person takes its keys off": {pending, func(w *world) {
			w.edit("n0", func(n *corev1.Node) {
				delete(n.Annotations, remediations.NodeRepairKey)
				delete(n.Labels, remediations.PhaseLabel)
			})
		}},
		"it ends while the ledger is unreadable": {nil, func(w *world) {
			w.always["load"], w.always["save"] = "lost", "lost"
			w.heal("n0")
			w.in(10*time.Minute, func() { clear(w.always) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Limits.Concurrent.Value = 2
			inWorld(t, conf, 8, func(t *testing.T, w *world) {
				conf.Limits.Unhealthy.Value = 40
				w.onTrial(t)
				if c.when != nil {
					w.do(func() { w.machines["n0"].silenced = true }) // otherwise the second attempt follows at once
					require.True(t, w.until(15*time.Minute, func() bool { return c.when(w) }))
				}
				w.do(func() {
					c.goes(w)
					if m := w.machines["n0"]; m != nil {
						m.silenced = true
					}
				})
				require.True(t, w.until(30*time.Minute, func() bool { return len(w.calls) > 1 && w.calls[len(w.calls)-1].node == "n1" }), "n1 is tried")
			})
		})
	}
}

// TestTimesOfALeaderWhoseClockWasAheadAreCorrected by the next leader whose
// clock most kubelets confirm.
func TestTimesOfALeaderWhoseClockWasAheadAreCorrected(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"30 days ahead": 720 * time.Hour, "the control": 0} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.always["heartbeats"] = "lost" }) // otherwise it might notice that most leases are stale before it opens the breaker
				w.startWith(w.config, ahead)
				w.do(func() {
					for _, n := range []string{"n0", "n1", "n2", "n3"} {
						w.breakDown(n, 9)
						w.post(n, remediations.StatusFiring)
					}
				})
				w.untilBreaker(t, ledger.BreakerOpen, time.Minute)
				require.Equal(t, ahead > 0, w.breaker().Quiet.After(time.Now().Add(time.Minute)))
				w.do(func() { w.quiet("n0", "n1", "n2", "n3") }) // otherwise the next leader would count a storm of its own
				w.pass(20 * time.Second)
				w.do(func() { clear(w.always) })
				w.restart(w.config)
				w.pass(time.Minute)
				require.False(t, w.breaker().Quiet.After(time.Now().Add(time.Minute)))
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(6 * time.Minute)
				require.Positive(t, w.callCount())
			})
		})
	}
}

// TestPlantedRecordKeepsNoSlot: a client that may write on Nodes wrote the record while Drydock
// only observed.
func TestPlantedRecordKeepsNoSlot(t *testing.T) {
	for name, until := range map[string]time.Time{"until the year 9999": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "for a day": {}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				observe := *w.config
				p := *observe.Policies[0]
				p.Mode, observe.Policies, observe.Mode = remediations.ModeObserve, []*remediations.Policy{&p}, remediations.ModeObserve
				w.startWith(&observe, 0)
				w.pass(16 * time.Second)
				w.do(func() {
					if until.IsZero() {
						until = time.Now().Add(24 * time.Hour)
					}
					r := remediations.Record{
						V: 1, ID: "plant1", Policy: p.Name, Cause: remediations.Cause{Alert: fingerprintOf("n5")}, Phase: remediations.PhaseVerifying,
						Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Done: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: time.Now(), Since: time.Now(), Deadline: until,
						Intent: &remediations.Intent{ID: "plant1-0-1", At: time.Now(), BootID: "n5-boot1", Outcome: remediations.CallAccepted},
					}
					w.edit("n5", func(n *corev1.Node) {
						n.Annotations[remediations.NodeRepairKey] = r.Encode()
						n.Labels[remediations.PhaseLabel] = string(r.Phase)
					})
					w.machines["n5"].stuck = true // its alert does not end, so nothing ends the record either
					w.machines["n5"].silenced = true
				})
				w.pass(time.Minute)
				w.restart(w.config)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(20 * time.Minute)
				require.Equal(t, 1, w.callCount(), "n0 is repaired")
				if name != "for a day" { // the longest time of a phase, without a slot
					require.NotEqual(t, remediations.PhaseVerifying, w.recordOf("n5").Phase)
				}
			})
		})
	}
}

// TestAPlantedRecordOfAStepThatIsProvenByALeaseEnds: the record claims that a kubelet was restarted
// in the year 9999, so no lease is ever newer. A second leader finds the ledger, and reads the
// leases of all nodes only when a decision needs them.
func TestAPlantedRecordOfAStepThatIsProvenByALeaseEnds(t *testing.T) {
	c := modelConfig()
	c.Policies[0].Plan = append([]remediations.Step{{Name: "restart-kubelet", Attempts: 1, Wait: 2 * time.Minute}}, c.Policies[0].Plan...)
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		first := w.start()
		w.pass(time.Minute)
		w.do(func() { first.cancel() })
		w.pass(6 * time.Second)
		w.do(func() {
			never := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
			n := w.nodes["n2"]
			r := remediations.Record{
				V: 1, ID: "plant1", Policy: c.Policies[0].Name, Cause: remediations.Cause{Alert: fingerprintOf("n2")}, Phase: remediations.PhaseVerifying,
				Step: remediations.StepRef{Name: "restart-kubelet", Attempt: 1}, Done: remediations.Attempts{{Name: "restart-kubelet", Number: 1}}, Began: never, Since: never, Deadline: never,
				Intent: &remediations.Intent{ID: "plant1-0-1", At: never, UID: string(n.UID), ProviderID: n.Spec.ProviderID, BootID: n.Status.NodeInfo.BootID, Outcome: remediations.CallAccepted},
			}
			w.edit("n2", func(n *corev1.Node) {
				n.Annotations[remediations.NodeRepairKey] = r.Encode()
				n.Labels[remediations.PhaseLabel] = string(r.Phase)
			})
		})
		w.start()
		w.pass(25 * time.Minute)
		require.NotContains(t, w.nodeOf("n2").Annotations, remediations.NodeRepairKey)
		require.Zero(t, w.callCount())
	})
}

// TestARepairThatEndsInAMonthHoldsNoOtherUntilThen: a leader whose clock was ahead for a moment
// wrote that end. The time is corrected on the Node, and the cooldown ends when it should.
func TestARepairThatEndsInAMonthHoldsNoOtherUntilThen(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a month ahead": 30 * 24 * time.Hour, "a right clock": 0} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				ended := time.Now().Add(ahead).UTC().Truncate(time.Second)
				w.do(func() {
					w.edit("n0", edit(remediations.HistoryKey, remediations.EncodeHistory(nil, remediations.Entry{
						ID: "abc234", Policy: "node-not-ready", Outcome: remediations.OutcomeCancelled, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: ended, Ended: ended,
					})))
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(4 * time.Minute)
				require.Zero(t, w.callCount(), "its cool-down is five minutes")
				w.pass(6 * time.Minute)
				require.Equal(t, 1, w.callCount())
			})
		})
	}
}
