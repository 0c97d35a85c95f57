package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// cancels are the cancels of the node's machine in the ledger. The world is locked.
func (w *world) cancels(node string) (n int) {
	for _, e := range mustLedger(w).EndsOf(w.nodes[node], time.Now(), 0) {
		if e.Alert != "" {
			n++
		}
	}
	return n
}

// cancel is a person who cancels the repair of the node before its first step.
func (w *world) cancel(t *testing.T, node string) {
	t.Helper()
	w.do(func() { w.hold(node, edit(remediations.PauseKey, "true")); w.ail(node, 99) })
	require.True(t, w.until(5*time.Minute, func() bool { return w.record(node) != nil }))
	w.do(func() { w.edit(node, edit(remediations.CancelKey, w.record(node).ID)); w.unhold(node) })
	w.pass(time.Minute)
}

// TestTheLedgerKeepsACancelUntilTheNodeForgotIt: while the Node cannot be written, the ledger keeps
// the cancel and is not written at each look at Alertmanager. When the Node can be written, both
// forget it.
func TestTheLedgerKeepsACancelUntilTheNodeForgotIt(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(2 * time.Minute)
		w.cancel(t, "n0")
		w.pass(5 * time.Minute)
		require.Equal(t, 1, at(w, func() int { return w.cancels("n0") }))
		w.do(func() { w.heal("n0"); w.refuses = "n0" })
		w.pass(20 * time.Minute)
		before := at(w, func() int { return w.ledgerRV })
		w.pass(20 * time.Minute)
		require.Equal(t, before, at(w, func() int { return w.ledgerRV }))
		require.Equal(t, 1, at(w, func() int { return w.cancels("n0") }))

		w.do(func() { w.refuses = "" })
		require.True(t, w.until(10*time.Minute, func() bool { return w.cancels("n0") == 0 }), "the control")
		require.Less(t, at(w, func() int { return w.ledgerRV }), before+4)
	})
}

// TestACancelEndsThoughTheLedgerCouldNotBeSaved: the Node forgets the cancel first, so the ledger
// must forget it later.
func TestACancelEndsThoughTheLedgerCouldNotBeSaved(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(2 * time.Minute)
		w.cancel(t, "n0")
		w.do(func() { w.heal("n0"); w.always["save"] = "lost" })
		w.pass(20 * time.Minute)
		require.Equal(t, 1, at(w, func() int { return w.cancels("n0") }))
		w.do(func() { clear(w.always) })
		require.True(t, w.until(10*time.Minute, func() bool { return w.cancels("n0") == 0 }))
	})
}

// TestThePassSavesWhatItFoundOnAllNodesAtOnce: the ledger has lost the ends of six nodes' repairs.
func TestThePassSavesWhatItFoundOnAllNodesAtOnce(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(2 * time.Minute)
		var before int
		w.do(func() {
			for _, n := range nodeNames {
				w.endedOn(n)
			}
			before = w.ledgerRV
		})
		w.pass(2 * time.Minute)
		require.Equal(t, before+1, at(w, func() int { return w.ledgerRV }))
		for _, n := range nodeNames {
			require.Len(t, at(w, func() []ledger.End { return mustLedger(w).EndsOf(w.nodes[n], time.Now(), 0) }), 1, n)
		}
	})
}

// endedOn writes on the Node a repair that ended a moment ago, and a pause, so that the engine
// decides about the Node.
func (w *world) endedOn(node string) {
	now := remediations.Instant(time.Now())
	e := remediations.Entry{ID: "ended0", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: now, Ended: now}
	w.edit(node, edit(remediations.HistoryKey, remediations.EncodeHistory(nil, e)))
	w.edit(node, edit(remediations.PauseKey, "true"))
}

// TestAFullLedgerIsNotWrittenForEndsInEachPass: if the ledger has no room for the ends on the
// Nodes, it is not written. With room it is, which is the control.
func TestAFullLedgerIsNotWrittenForEndsInEachPass(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(2 * time.Minute)
		fill := func(room int) { // a repair of a machine takes this many bytes
			l := w.book()
			l.Repairs = map[string][]ledger.Begun{}
			begin := func() {
				l.Repairs[fmt.Sprintf("machine-%08d", len(l.Repairs))] = []ledger.Begun{{Repair: "begun0", At: remediations.Instant(time.Now())}}
			}
			begin()
			one := ledger.Room(l.Encode())
			begin()
			each := one - ledger.Room(l.Encode())
			for range (one-each-room)/each - 1 {
				begin()
			}
			require.InDelta(t, room, ledger.Room(l.Encode()), 200)
			w.ledger = l.Encode()
			w.ledgerRV++
			for _, n := range nodeNames {
				w.endedOn(n)
			}
		}
		known := func() (n int) {
			for _, name := range nodeNames {
				n += len(at(w, func() []ledger.End { return mustLedger(w).EndsOf(w.nodes[name], time.Now(), 0) }))
			}
			return n
		}
		w.do(func() { fill(ledger.MostBytes/-16 + 400) })
		w.pass(time.Minute)
		before := at(w, func() int { return w.ledgerRV })
		w.pass(2 * time.Minute)
		require.Equal(t, before, at(w, func() int { return w.ledgerRV }))
		require.Zero(t, known())
		w.do(func() { fill(600) })
		w.pass(time.Minute)
		require.Positive(t, known())
		require.Less(t, known(), 6, "as many as there is room for")
		w.do(func() { fill(10_000) })
		w.pass(time.Minute)
		require.Equal(t, 6, known())
	})
}

// TestACancelOutlivesALongAbsenceOfDrydock: its alert has fired all the time, and the Node has lost
// its keys. The break-glass of another node is saved before the engine decides about any node. The
// cancel of an alert that has ended is forgotten, which is the control.
func TestACancelOutlivesALongAbsenceOfDrydock(t *testing.T) {
	for _, fires := range []bool{true, false} {
		inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
			w.start()
			w.pass(2 * time.Minute)
			w.cancel(t, "n5")
			w.do(func() {
				w.endAll()
				w.removeKeys("n5")
				if fires {
					a := w.config.NewAlert(w.config.Policies[0], labelsOf("n5"), remediations.StatusFiring, time.Now(), time.Now())
					w.edit("n5", edit(a.Key(), a.Encode()))
				} else {
					w.heal("n5")
				}
			})
			w.pass(48 * time.Hour)
			w.do(func() { w.breakGlass("n0") })
			w.start()
			w.pass(20 * time.Minute)
			w.do(func() { w.unhold("n0") })
			w.pass(2 * time.Minute)
			if fires {
				require.Equal(t, 1, at(w, func() int { return w.cancels("n5") }))
			} else {
				require.Zero(t, at(w, func() int { return w.cancels("n5") }))
			}
		})
	}
}
