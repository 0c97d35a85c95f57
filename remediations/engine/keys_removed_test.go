package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// removeKeys removes all that Drydock wrote on the Node, as another client may do if admission does
// not refuse it.
func (w *world) removeKeys(name string) {
	w.edit(name, func(n *corev1.Node) {
		for key := range n.Annotations {
			if strings.HasPrefix(key, remediations.RepairPrefix) || strings.HasPrefix(key, remediations.AlertPrefix) || key == remediations.HistoryKey {
				delete(n.Annotations, key)
			}
		}
		delete(n.Labels, remediations.PhaseLabel)
		n.Spec.Unschedulable = false
	})
}

// registerAgain deletes the Node of a machine with a fault. The same machine registers again, or
// another machine with the same fault. The alert keeps its start.
func (w *world) registerAgain(name, providerID string) {
	was := w.machines[name]
	w.leave(name)
	w.join(name, providerID)
	w.machines[name].sick, w.machines[name].since = was.sick, was.since
	w.report(w.machines[name])
}

// lostOnTheNode are the ways a Node can lose all that Drydock wrote on it. holds: what holds a
// repair is in the ledger, too.
func lostOnTheNode() map[string]struct {
	was   string
	lose  func(*world)
	holds bool
} {
	return map[string]struct {
		was   string
		lose  func(*world)
		holds bool
	}{
		"the keys are removed":                       {"civo://m0", func(w *world) { w.removeKeys("n0") }, true},
		"the same machine registers again":           {"civo://m0", func(w *world) { w.registerAgain("n0", "civo://m0") }, true},
		"another machine registers, the control":     {"civo://m0", func(w *world) { w.registerAgain("n0", "civo://another") }, false},
		"no providerID, the keys are removed":        {"", func(w *world) { w.removeKeys("n0") }, true},
		"no providerID, a Node of the name is back":  {"", func(w *world) { w.registerAgain("n0", "") }, true},
		"no providerID, and another machine has one": {"", func(w *world) { w.registerAgain("n0", "civo://another") }, false},
	}
}

// TestACancelHoldsWithoutTheNodesKeys: a person cancelled the repair of an alert, and the Node
// loses what Drydock wrote on it. No repair begins for the same alert, until a person resets the
// machine or the alert begins again.
func TestACancelHoldsWithoutTheNodesKeys(t *testing.T) {
	for name, c := range lostOnTheNode() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.leave("n0"); w.join("n0", c.was) })
				w.start()
				w.pass(2 * time.Minute)
				w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); w.ail("n0", 99) })
				require.True(t, w.until(5*time.Minute, func() bool { return w.record("n0") != nil }))
				w.do(func() { w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID)); w.unhold("n0") })
				w.pass(time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
				require.Zero(t, w.callCount())
				w.do(func() { c.lose(w) })
				w.pass(30 * time.Minute)
				if !c.holds {
					require.Positive(t, w.callCount(), "the control: nobody cancelled a repair of this machine")
					return
				}
				require.Zero(t, w.callCount())
				w.do(func() { w.heal("n0") })
				w.pass(10 * time.Minute)
				w.do(func() { w.ail("n0", 1) })
				w.pass(10 * time.Minute)
				require.Equal(t, 1, w.callCount(), "the alert has ended, and fires again")
				require.Empty(t, at(w, func() []ledger.End { return mustLedger(w).EndsOf(w.nodes["n0"], time.Now(), 0) })[1:], "the cancel is over")
			})
		})
	}
}

// TestAResetIsInTheLedgerBeforeItIsOnTheNode: the ledger cannot be saved when a person resets the
// node whose repair was cancelled. The request stays on the Node until the reset is done.
func TestAResetIsInTheLedgerBeforeItIsOnTheNode(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(2 * time.Minute)
		w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); w.ail("n0", 1) })
		require.True(t, w.until(5*time.Minute, func() bool { return w.record("n0") != nil }))
		w.do(func() { w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID)); w.unhold("n0") })
		w.pass(30 * time.Minute)
		w.do(func() { w.always["save"] = "lost"; w.edit("n0", edit(remediations.ResetKey, "true")) })
		w.pass(10 * time.Minute)
		require.Contains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		require.Zero(t, w.callCount(), "the control")
		w.do(func() { clear(w.always) })
		w.pass(20 * time.Minute)
		require.Equal(t, 1, w.callCount())
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
	})
}

// TestAResetEndsACancelThatOnlyTheLedgerKnows: the reset allows the alert's repair to begin.
// Without the reset it is held, which is the control.
func TestAResetEndsACancelThatOnlyTheLedgerKnows(t *testing.T) {
	for _, lost := range []bool{true, false} {
		inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
			w.start()
			w.pass(2 * time.Minute)
			w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")); w.ail("n0", 1) })
			require.True(t, w.until(5*time.Minute, func() bool { return w.record("n0") != nil }))
			w.do(func() { w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID)); w.unhold("n0") })
			w.pass(time.Minute)
			w.do(func() {
				if lost {
					w.removeKeys("n0")
				}
			})
			w.pass(30 * time.Minute)
			require.Zero(t, w.callCount(), "the control")
			w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
			w.pass(20 * time.Minute)
			require.Equal(t, 1, w.callCount())
			require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		})
	}
}

// TestACooldownHoldsWithoutTheNodesKeys: a repair has ended, and the Node loses what Drydock wrote
// on it. The next repair waits for the policy's cooldown.
func TestACooldownHoldsWithoutTheNodesKeys(t *testing.T) {
	for name, c := range lostOnTheNode() {
		t.Run(name, func(t *testing.T) {
			config := modelConfig()
			config.Policies[0].Cooldown = time.Hour
			inWorld(t, config, 6, func(t *testing.T, w *world) {
				w.do(func() { w.leave("n0"); w.join("n0", c.was) })
				w.start()
				w.pass(2 * time.Minute)
				w.do(func() { w.ail("n0", 1) })
				require.True(t, w.until(20*time.Minute, func() bool { return len(w.ended) == 1 }))
				require.Equal(t, 1, w.callCount())
				w.do(func() { w.ail("n0", 1); c.lose(w) })
				w.pass(50 * time.Minute)
				if !c.holds {
					require.Equal(t, 2, w.callCount(), "the control: nobody repaired this machine")
					return
				}
				require.Equal(t, 1, w.callCount())
				w.pass(20 * time.Minute)
				require.Equal(t, 2, w.callCount(), "the cooldown is over")
			})
		})
	}
}

// TestAnExhaustedRepairHoldsWithoutTheNodesKeys: the plan ran out, and the Node loses what Drydock
// wrote on it. No further call is made until a person resets the machine.
func TestAnExhaustedRepairHoldsWithoutTheNodesKeys(t *testing.T) {
	for name, c := range lostOnTheNode() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				exhausted := func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseExhausted }
				w.do(func() { w.leave("n0"); w.join("n0", c.was) })
				w.start()
				w.pass(2 * time.Minute)
				w.do(func() { w.ail("n0", 99) })
				require.True(t, w.until(time.Hour, exhausted))
				w.pass(time.Minute)
				require.Equal(t, 2, w.callCount())
				w.do(func() { c.lose(w) })
				w.pass(2 * time.Hour)
				if !c.holds {
					require.Equal(t, 4, w.callCount(), "the control: the plan of this machine did not run out")
					return
				}
				require.Equal(t, 2, w.callCount())
				require.True(t, w.until(time.Minute, exhausted), "the record is back")
				w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
				w.pass(time.Hour)
				require.Greater(t, w.callCount(), 2, "a person let it begin again")
			})
		})
	}
}
