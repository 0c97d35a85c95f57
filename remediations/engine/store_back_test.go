package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// backAfter is a scenario: some time after a call, the store goes back to its state before the
// call.
func backAfter(after time.Duration, back func(w *world, to snapshot), restart bool) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); w.ail("n0", 9) })
		require.True(t, w.until(2*time.Minute, func() bool { return w.record("n0") != nil }))
		var before snapshot
		w.do(func() { w.unhold("n0"); before = w.snapshot() })
		require.True(t, w.until(2*time.Minute, func() bool { return len(w.calls) == 1 }))
		w.pass(after)
		w.do(func() { back(w, before) })
		if restart {
			w.restart(w.config)
		}
		w.pass(time.Hour)
	}
}

func etcdGoesBack(w *world, to snapshot)    { w.restore(to) }
func oneNodeGoesBack(w *world, to snapshot) { w.putBack("n0", to) }
func theLedgerGoesBack(w *world, to snapshot) {
	w.ledger, w.ledgerRV = to.ledger, w.ledgerRV+1
}

// callsAgain allows a process to call an attempt that it already called, or that the ledger names.
func callsAgain(h *hands) { h.w.core.calling = func(attempts, string, time.Time) string { return "" } }

// repairedThenBack is a scenario: n0 is repaired, the store goes back to its state before that, and
// n1 fails.
func repairedThenBack(restart bool) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		w.start()
		w.pass(time.Minute)
		var before snapshot
		w.do(func() { before = w.snapshot(); w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(10*time.Minute, func() bool { return len(w.ended) == 1 }))
		w.pass(time.Minute)
		w.do(func() { w.restore(before) })
		w.pass(time.Minute)
		if restart {
			w.restart(w.config)
		}
		w.do(func() { w.ail("n1", 1); w.post("n1", remediations.StatusFiring) })
		w.pass(5 * time.Minute)
	}
}

// forgetsThatTheStoreWentBack hides from Decide that the store went back.
func forgetsThatTheStoreWentBack(h *hands) {
	h.state(func(s *lifecycle.State, _ time.Time) {
		s.Ledger = s.Ledger.Clone()
		s.Ledger.Status.WentBack = nil
	})
}

// storeKnockOuts are the knock-outs of a store that goes back: invariant 4.
func storeKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"4: an attempt that this process called, though etcd went back": {
			take: callsAgain, speaks: "4: the intent", tale: backAfter(5*time.Second, etcdGoesBack, false),
		},
		"4: an attempt that this process called, though its Node went back": {
			take: callsAgain, speaks: "4: the intent", tale: backAfter(5*time.Second, oneNodeGoesBack, false),
		},
		"4: an attempt that the ledger names, though its Node went back": {
			take: callsAgain, speaks: "4: the intent", tale: backAfter(5*time.Second, oneNodeGoesBack, true),
		},
		"a store that went back holds what disrupts": {
			take: forgetsThatTheStoreWentBack, speaks: "StoreWentBack: an intent to reboot on n1, and nothing", tale: repairedThenBack(false),
		},
		"a store that went back holds the next leader, too": {
			take: forgetsThatTheStoreWentBack, speaks: "StoreWentBack: an intent to reboot on n1, and the ledger", tale: repairedThenBack(true),
		},
	}
}

// TestAStoreThatGoesBackCallsNoAttemptTwice: this holds for any part of the store that goes back,
// and at any time after the call. A second call would fail the model's own check.
func TestAStoreThatGoesBackCallsNoAttemptTwice(t *testing.T) {
	for name, back := range map[string]func(*world, snapshot){"etcd": etcdGoesBack, "one node": oneNodeGoesBack, "the ledger": theLedgerGoesBack} {
		for _, after := range []time.Duration{0, time.Second, 5 * time.Second, time.Minute, 9 * time.Minute, 15 * time.Minute} {
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				t.Parallel()
				inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
					backAfter(after, back, false)(t, w)
					require.LessOrEqual(t, w.callCount(), 2, "the plan has two attempts")
				})
			})
		}
	}
}

// TestAStoreThatGoesBackHoldsWhatDisrupts: disruptive steps are held for as long as a step may
// take, and that is reported.
func TestAStoreThatGoesBackHoldsWhatDisrupts(t *testing.T) {
	for name, restore := range map[string]func(*world, snapshot){
		"etcd goes back": (*world).restore, "etcd goes back, and its versions forward": (*world).restoreAhead, "the control": nil,
	} {
		back := restore != nil
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				i := w.start()
				w.pass(time.Minute)
				var before snapshot
				w.do(func() { before = w.snapshot() })
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				require.True(t, w.until(10*time.Minute, func() bool { return len(w.ended) == 1 }))
				w.pass(time.Minute)
				w.do(func() {
					if back {
						restore(w, before)
					}
					w.ail("n1", 1)
				})
				w.pass(9 * time.Minute)
				require.Equal(t, back, w.callCount() == 1)
				require.Equal(t, back, len(w.toldOf("StoreWentBack")) > 0)
				require.Equal(t, back, w.heldAs(remediations.ReasonStoreWentBack) > 0)
				require.InDelta(t, map[bool]float64{true: 1}[back], testutil.ToFloat64(i.engine.metrics.blind.WithLabelValues(blindStore)), 0)
				w.pass(5 * time.Minute)
				require.Equal(t, []string{"n0", "n1"}, at(w, func() (nodes []string) {
					for _, c := range w.calls {
						nodes = append(nodes, c.node)
					}
					return nodes
				}), "n1 is repaired after that")
			})
		})
	}
}

// TestARestoreThatLosesOneAttemptHoldsWhatDisrupts: the store still has the repair, and raised its
// versions, but lost the repair's last attempt.
func TestARestoreThatLosesOneAttemptHoldsWhatDisrupts(t *testing.T) {
	held := func(w *world) (n int) {
		for _, e := range w.toldOf("StoreWentBack") {
			if e.Action == "Held" {
				n++
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		config *remediations.Config
		ail    func(w *world)
		waits  func(w *world) bool
		called func(w *world) int
		before int // calls before the snapshot
	}{
		"the first attempt on a node": {
			config: modelConfig(), ail: func(w *world) { w.ail("n0", 9) },
			waits:  func(w *world) bool { return w.record("n0") != nil },
			called: func(w *world) int { return len(w.calls) },
		},
		"the second attempt on a node": {
			config: modelConfig(), ail: func(w *world) { w.unhold("n0"); w.ail("n0", 9) }, before: 1,
			waits: func(w *world) bool {
				if len(w.calls) == 1 {
					w.hold("n0", edit(remediations.PauseKey, "true"))
				}
				r := w.record("n0")
				return r != nil && r.Phase == remediations.PhasePending && len(r.Done) == 1
			},
			called: func(w *world) int { return len(w.calls) },
		},
		"the move of a location's leader": {
			config: leaderConfig(), ail: func(w *world) { w.darken("n0", true) },
			waits:  func(w *world) bool { return w.leaderRecords()["n0"] != nil },
			called: func(w *world) int { return len(w.mesh.moved) },
		},
	} {
		for _, back := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, restored: %t", name, back), func(t *testing.T) {
				t.Parallel()
				inMesh(t, c.config, func(t *testing.T, w *world) {
					w.start()
					w.pass(16 * time.Second)
					w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); c.ail(w) })
					require.True(t, w.until(time.Hour, func() bool { return c.waits(w) }))
					require.Equal(t, c.before, at(w, func() int { return c.called(w) }))
					var before snapshot
					w.do(func() { w.unhold("n0"); before = w.snapshot() })
					require.True(t, w.until(time.Hour, func() bool { return c.called(w) == c.before+1 }))
					if back {
						w.do(func() { w.restoreAhead(before) })
					}
					w.pass(time.Minute)
					require.Equal(t, back, held(w) > 0)
					require.Equal(t, c.before+1, at(w, func() int { return c.called(w) }))
				})
			})
		}
	}
}

// TestAResetOfAnUnreadableRecordReportsNoStoreThatWentBack: the reset drops the record, and with it
// the attempts that this process called.
func TestAResetOfAnUnreadableRecordReportsNoStoreThatWentBack(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 9) })
		require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }))
		w.do(func() {
			w.edit("n0", edit(remediations.NodeRepairKey, "spoilt"))
			w.edit("n0", edit(remediations.ResetKey, "true"))
		})
		require.True(t, w.until(time.Minute, func() bool { return w.nodes["n0"].Annotations[remediations.ResetKey] == "" }))
		w.pass(5 * time.Minute)
		require.Empty(t, w.toldOf("StoreWentBack"))
	})
}

// TestASlotOfAnUnknownKindIsKeptAndSteppedOver: a newer version may have taken it, also for a kind
// that takes no slots in this version.
func TestASlotOfAnUnknownKindIsKeptAndSteppedOver(t *testing.T) {
	for _, kind := range []remediations.Kind{"rack", remediations.KindSidecar} {
		t.Run(string(kind), func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				slot := func(kind remediations.Kind, node string) ledger.Slot {
					return ledger.Slot{Kind: kind, Node: node, UID: string(w.nodes[node].UID), Policy: "node-not-ready", Repair: "r" + node, Attempt: "r" + node + "-0-1", Since: time.Now().Add(-time.Hour)}
				}
				w.do(func() {
					w.ledger, w.ledgerRV = (&ledger.Ledger{Slots: []ledger.Slot{slot(kind, "n4"), slot("", "n5")}, Repairs: map[string][]ledger.Begun{}}).Encode(), 7
				})
				i := w.start()
				w.pass(10 * time.Minute)
				require.Equal(t, []remediations.Kind{kind}, kindsOfSlots(w.slots(t)), "the one behind it is freed")
				require.Len(t, w.toldOf("SlotUnknown"), 1)
				require.Less(t, at(w, func() int { return i.asked["node"] }), 20)
			})
		})
	}
}

// TestUnknownFieldsOfTheLedgerHoldNothing: a newer Drydock wrote them. The repair continues, and
// each write of the ledger keeps them.
func TestUnknownFieldsOfTheLedgerHoldNothing(t *testing.T) {
	c := modelConfig()
	c.Limits.Concurrent = remediations.Quantity{Value: 2} // the slot counts
	var said []string
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.do(func() {
			data := (&ledger.Ledger{Others: map[string]string{"later": "{}"}}).Encode()
			data[ledger.KeyStatus] = `{"newer":{"a":1.0}}`
			data[ledger.KeySlots] = `[{"kind":"rack","node":"n4","policy":"p","repair":"r4","attempt":"a","since":"2000-01-01T00:00:00Z","lane":7}]`
			w.ledger, w.ledgerRV = data, 7
			w.log = funcr.New(func(_, line string) {
				if strings.Contains(line, "fields that this version of Drydock does not know") {
					said = append(said, line)
				}
			}, funcr.Options{})
		})
		w.start()
		w.pass(2 * time.Minute)
		w.do(func() { w.ail("n0", 1) })
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		l := at(w, func() *ledger.Ledger { return mustLedger(w) })
		require.Equal(t, []string{"later", "slots.lane", "status.newer"}, l.UnknownFields())
		require.Contains(t, l.Encode()[ledger.KeyStatus], `"newer":{"a":1.0}`)
		require.Len(t, said, 1)
		require.Contains(t, said[0], "later, slots.lane, status.newer")
	})
}

func kindsOfSlots(slots []ledger.Slot) (kinds []remediations.Kind) {
	for _, s := range slots {
		kinds = append(kinds, s.Kind)
	}
	return slices.Compact(kinds)
}
