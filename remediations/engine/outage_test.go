package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// heldOn is an Event about a hold: its node, its message, and when it was sent.
type heldOn struct {
	node, note string
	at         time.Time
}

// heldAs counts the Events of holds with the reason, except those about one node that the fleet
// holds for long.
func (w *world) heldAs(reason remediations.Reason) int {
	return at(w, func() (count int) {
		for _, h := range w.toldOn {
			if strings.HasPrefix(h.note, string(reason)+": ") && !strings.Contains(h.note, "(has held since ") {
				count++
			}
		}
		return count
	})
}

// TestNoPhaseOutlivesItsDeadlineInSilence: whatever is missing, a repair past its deadline is held,
// people are informed, and its slot is free.
func TestNoPhaseOutlivesItsDeadlineInSilence(t *testing.T) {
	for name, c := range map[string]struct {
		lose   func(w *world)
		reason remediations.Reason
		slots  bool // the ledger can be read
	}{
		"the leases cannot be listed": {func(w *world) { w.always["heartbeats"] = "lost" }, remediations.ReasonBlind, true},
		"there are no leases":         {func(w *world) { w.always["heartbeats"] = "empty" }, remediations.ReasonBlind, true},
		"the ledger cannot be read":   {func(w *world) { w.always["load"], w.always["save"] = "lost", "lost" }, remediations.ReasonBlind, false},
		"the ledger cannot be saved":  {func(w *world) { w.always["save"] = "lost" }, remediations.ReasonBlind, false},
		"the ledger is malformed":     {func(w *world) { w.kept, w.ledger = w.ledger, map[string]string{"v": "x"}; w.ledgerRV++ }, remediations.ReasonRecordMalformed, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.nonsense = nil // otherwise a hold that begins meanwhile would be a status to save
				w.start()
				w.do(func() { w.ail("n0", 2); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.pass(5 * time.Second)
				require.Equal(t, remediations.PhaseVerifying, w.recordOf("n0").Phase)
				w.do(func() { c.lose(w) })
				w.pass(14 * time.Minute)
				require.Equal(t, remediations.PhasePending, w.recordOf("n0").Phase)
				require.Equal(t, c.reason, w.recordOf("n0").Hold.Reason)
				require.Equal(t, 1, w.heldAs(c.reason), "told once")
				if c.slots {
					require.Empty(t, w.slots(t))
				}
				w.pass(3 * time.Hour)
				require.Equal(t, 1, w.heldAs(c.reason), "told once, however long it lasts")
				require.Equal(t, 1, w.callCount())
				w.do(func() {
					clear(w.always)
					if w.kept != nil {
						w.ledger = w.kept
						w.ledgerRV++
					}
				})
				w.pass(20 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes(), "it goes on where it was")
				require.Empty(t, w.slots(t))
			})
		})
	}
}

// TestReadsAndSavesThatFailAreRepeatedSeldom: a failing call is not repeated for each node or in
// each pass.
func TestReadsAndSavesThatFailAreRepeatedSeldom(t *testing.T) {
	for name, c := range map[string]struct {
		lose []string
		port string
		most int
	}{
		"leases":                       {[]string{"heartbeats"}, "heartbeats", 30},
		"a ledger that is not saved":   {[]string{"save"}, "save", 30},
		"a ledger that others save":    {[]string{"save=conflict"}, "save", 60},
		"a ledger that cannot be read": {[]string{"load", "save"}, "load", 30},
	} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Limits.Unhealthy.Value = 100
			inWorld(t, conf, 40, func(t *testing.T, w *world) {
				i := w.start()
				w.pass(30 * time.Second)
				w.do(func() {
					for _, op := range c.lose {
						op, how, _ := strings.Cut(op, "=")
						w.always[op] = map[bool]string{true: "lost", false: how}[how == ""]
					}
					clear(i.asked)
					for _, n := range nodeNames[1:] {
						w.ail(n, 1)
						w.post(n, remediations.StatusFiring)
					}
				})
				w.pass(10 * time.Minute)
				asked := at(w, func() int { return i.asked[c.port] })
				require.Positive(t, asked)
				require.LessOrEqual(t, asked, c.most)
				w.do(func() { w.hold("n0", edit(remediations.PauseKey, time.Now().Add(-time.Minute).Format(time.RFC3339))) })
				w.do(func() { clear(w.always) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) > 0 }), "and soon, once it is there again")
			})
		})
	}
}

// TestResetWaitsForTheLedger: the reset is done completely or not at all.
func TestResetWaitsForTheLedger(t *testing.T) {
	conf := modelConfig()
	conf.Policies[0].Plan[0].Attempts = 1
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 9) })
		w.pass(20 * time.Minute)
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
		w.do(func() {
			w.heal("n0")
			w.always["load"], w.always["save"] = "lost", "lost"
			w.edit("n0", edit(remediations.ResetKey, "true"))
		})
		w.pass(20 * time.Minute)
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
		require.Contains(t, w.nodeOf("n0").Annotations, remediations.ResetKey, "the wish stands")
		require.True(t, at(w, func() bool {
			return slices.ContainsFunc(w.told, func(e Event) bool { return strings.Contains(e.Note, remediations.ResetKey+" waits") })
		}), "and who wrote it is told")
		w.do(func() { clear(w.always) })
		w.pass(time.Minute)
		require.Nil(t, w.recordOf("n0"))
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		require.Empty(t, at(w, func() map[string]int { return w.book().Status.Exhausted }))
		require.Empty(t, at(w, func() map[string][]ledger.Begun { return w.book().Repairs }), "all of it")
	})
}

// TestResetIsReportedWhenItIsDone: the Event comes once, and not while the Node cannot be written.
func TestResetIsReportedWhenItIsDone(t *testing.T) {
	conf := modelConfig()
	conf.Policies[0].Plan[0].Attempts = 1
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 9) })
		w.pass(20 * time.Minute)
		w.do(func() {
			w.heal("n0")
			w.edit("n0", edit(remediations.ResetKey, "true"))
			w.unwritable = "n0"
		})
		w.pass(time.Minute)
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
		require.Empty(t, w.toldOf("RepairCancelled"))
		w.do(func() { w.unwritable = "" })
		w.pass(3 * time.Minute)
		require.Nil(t, w.recordOf("n0"))
		require.Len(t, w.toldOf("RepairCancelled"), 1)
	})
}

// TestANodeThatRefusesWritesTakesNoSlot: the other nodes are repaired meanwhile, and no Event
// reports a removed record. A write that may have been done keeps the slot for a while.
func TestANodeThatRefusesWritesTakesNoSlot(t *testing.T) {
	for name, refused := range map[string]bool{"it is refused": true, "its answer is lost": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				slots := func() []ledger.Slot { return w.book().Slots }
				w.do(func() { w.ail("n1", 1) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.do(func() { w.ail("n0", 9) }) // it waits for the only slot
				require.True(t, w.until(time.Minute, func() bool { return len(remediations.ReadJournal(w.nodes["n0"]).Alerts) > 0 }))
				w.do(func() {
					if refused {
						w.refuses = "n0"
					} else {
						w.unwritable = "n0"
					}
				})
				if !refused { // the control
					require.True(t, w.until(10*time.Minute, func() bool { return len(slots()) == 1 && slots()[0].Node == "n0" }))
					return
				}
				require.True(t, w.until(10*time.Minute, func() bool {
					return slices.ContainsFunc(w.told, func(e Event) bool { return e.Reason == "NodeUnwritable" })
				}))
				require.Empty(t, at(w, slots))
				w.do(func() { w.ail("n2", 1) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 2 && w.calls[1].node == "n2" }), "the only slot is free")
				w.pass(10 * time.Minute)
				require.Empty(t, w.toldOf("RepairSuperseded"))
				require.Empty(t, at(w, slots))
				require.Len(t, at(w, func() []providerCall { return w.calls }), 2)
				w.do(func() { w.refuses = "" })
				require.True(t, w.until(10*time.Minute, func() bool { return len(w.calls) == 3 }), "once it takes writes it is repaired")
			})
		})
	}
}

// TestPolicyStoppedIsReportedWhenTheLedgerHasIt: a stop that is not in the ledger stops nothing. No
// other answer stops a policy.
func TestPolicyStoppedIsReportedWhenTheLedgerHasIt(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.mood.refuse = true; w.ail("n0", 9) })
		require.True(t, w.until(time.Minute, func() bool { return w.record("n0") != nil && w.record("n0").Phase == remediations.PhaseVerifying }))
		w.pass(5 * time.Second)
		require.Empty(t, w.toldOf("PolicyStopped"), "a call was refused, and not the account")
		w.do(func() { w.mood = providerMood{account: true, before: 2 * time.Second} })
		require.True(t, w.until(10*time.Minute, func() bool { return w.record("n0").Withheld() }))
		w.pass(5 * time.Second)
		require.Empty(t, w.toldOf("PolicyStopped"), "one machine's answer")
		w.do(func() { w.ail("n1", 9) })
		require.True(t, w.until(10*time.Minute, func() bool { return w.record("n1") != nil && w.record("n1").Phase == remediations.PhaseActing }))
		w.do(func() { w.always["save"] = "lost" })
		require.True(t, w.until(10*time.Second, func() bool { return w.record("n1").Withheld() }))
		w.pass(time.Second)
		require.Empty(t, w.toldOf("PolicyStopped"))
		w.do(func() { clear(w.always) })
		require.True(t, w.until(20*time.Minute, func() bool { return len(mustLedger(w).Status.Stopped) > 0 }), "the next call finds it out again")
		w.pass(time.Second)
		require.Len(t, w.toldOf("PolicyStopped"), 1)
	})
}

// TestStoppedPolicyIsReleasedAfterItsLastAlert: the account is paid, no node is unhealthy any more,
// and a person releases the policy.
func TestStoppedPolicyIsReleasedAfterItsLastAlert(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.mood.account = true; w.ail("n0", 1); w.ail("n1", 1); w.post("n0", remediations.StatusFiring) })
		stopped := func() map[string]string {
			return at(w, func() map[string]string { return w.book().Status.Stopped })
		}
		w.pass(5 * time.Minute)
		require.Contains(t, stopped(), "node-not-ready")
		w.do(func() { w.mood.account = false; w.heal("n0"); w.heal("n1"); w.post("n0", remediations.StatusResolved) })
		w.pass(10 * time.Minute)
		require.Nil(t, w.recordOf("n0"))
		require.Contains(t, stopped(), "node-not-ready", "nothing but a person releases it")
		w.do(func() { w.edit("n3", edit(remediations.ResetKey, "true")) })
		w.pass(time.Minute)
		require.Empty(t, stopped())
	})
}

// TestNodeThatCannotBeWrittenKeepsNoSlot: people are informed, and the other nodes are repaired.
func TestNodeThatCannotBeWrittenKeepsNoSlot(t *testing.T) {
	for name, acted := range map[string]bool{"before its first intent": false, "in mid-repair": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 8, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.ail("n0", 9)
					w.machines["n0"].since = time.Now().Add(-time.Minute)
					w.post("n0", remediations.StatusFiring)
					w.unwritable = map[bool]string{false: "n0"}[acted]
				})
				if acted {
					require.True(t, w.until(time.Minute, func() bool { return w.record("n0") != nil && w.record("n0").Phase == remediations.PhaseVerifying }))
					w.do(func() { w.unwritable = "n0" })
				}
				w.do(func() { w.ail("n1", 1) })
				require.True(t, w.until(40*time.Minute, func() bool { return len(w.calls) > 0 && w.calls[len(w.calls)-1].node == "n1" }), "n1 is repaired")
				require.True(t, at(w, func() bool {
					return slices.ContainsFunc(w.told, func(e Event) bool { return e.Reason == "NodeUnwritable" })
				}))
				w.do(func() { w.unwritable = ""; w.heal("n0") })
				w.pass(30 * time.Minute)
				require.Nil(t, w.recordOf("n0"))
				require.Empty(t, w.slots(t))
			})
		})
	}
}

// TestLeasesThatFailDoNotKeepTheLoopBusy: a node waits for leases that cannot be listed, while
// their last count is still valid. The world's own check fails if passes follow each other without
// a pause.
func TestLeasesThatFailDoNotKeepTheLoopBusy(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.do(func() { w.ail("n1", 1) })
		require.True(t, w.until(time.Minute, func() bool { return i.asked["heartbeats"] > 0 }))
		w.do(func() { w.always["heartbeats"], w.blindSince = "lost", time.Now(); clear(i.asked) })
		w.do(func() { w.hold("n0", edit(remediations.BreakGlassKey, "why")) })
		w.pass(2 * time.Minute)
		w.do(func() {
			require.Positive(t, i.asked["heartbeats"])
			delete(w.always, "heartbeats")
			w.blindSince = time.Time{}
		})
		w.pass(time.Minute)
		w.do(func() {
			require.Contains(t, mustLedger(w).Status.BreakGlass, "n0", "the hour begins when the leases are there again")
		})
	})
}

// TestAPersonIsAnsweredWhileTheLeaseListFails: each list of the leases takes ten seconds and fails,
// and a fleet of sick nodes waits for it. A person's request is still answered within seconds.
func TestAPersonIsAnsweredWhileTheLeaseListFails(t *testing.T) {
	const soon = 5 * time.Second
	conf := modelConfig()
	conf.Limits.Unhealthy.Value, conf.Limits.Concurrent.Value = 100, 9
	inWorld(t, conf, 30, func(t *testing.T, w *world) {
		i := w.start()
		w.do(func() { w.mood.idle = true; w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(time.Minute, func() bool { return w.record("n0") != nil && w.record("n0").Phase == remediations.PhaseVerifying }))
		w.do(func() {
			w.always["heartbeats"], w.blindSince, w.leasesTake = "lost", time.Now(), 10*time.Second
			clear(i.asked)
		})
		w.pass(15 * time.Second)
		w.do(func() {
			for k := range 20 {
				w.ail(fmt.Sprintf("n%d", k+1), 1)
				w.post(fmt.Sprintf("n%d", k+1), remediations.StatusFiring)
			}
		})
		w.pass(3 * time.Minute)
		require.Positive(t, at(w, func() int { return i.asked["heartbeats"] }))
		for round, node := range []string{"n1", "n2", "n3"} { // whatever the state of the list
			w.pass(time.Duration(3*round) * time.Second)
			w.do(func() { w.hold(node, edit(remediations.PauseKey, "true")) })
			require.True(t, w.until(soon, func() bool {
				r := w.record(node)
				return r != nil && r.Hold != nil && r.Hold.Reason == remediations.ReasonPaused
			}), "the pause of %s is on record", node)
			approved := fmt.Sprintf("n%d", round+4)
			w.do(func() { w.edit(approved, edit(remediations.ApproveKey, "zzzzzz")) })
			require.True(t, w.until(soon, func() bool {
				_, has := w.nodes[approved].Annotations[remediations.ApproveKey]
				return !has
			}), "who approves what there is not is told so")
		}
		w.do(func() { cancel(w) })
		require.True(t, w.until(soon, func() bool { return len(w.ended) > 0 }))
		require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
	})
}
