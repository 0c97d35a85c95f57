package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
)

// TestACancelOfAnotherMachinesRepairHoldsNothing: a Node is created again with the alert that a
// person cancelled, and the alert's start is older than the cancel. On another machine a repair
// begins. The same machine stays as the person left it, which is the control.
func TestACancelOfAnotherMachinesRepairHoldsNothing(t *testing.T) {
	for providerID, calls := range map[string]int{"civo://another": 2, "civo://m0": 1} {
		t.Run(providerID, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 9) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.pass(time.Minute)
				w.do(func() { cancel(w) })
				w.pass(6 * time.Minute) // the cooldown has ended
				require.Equal(t, remediations.ByPerson, w.ended[0].By)
				on := remediations.AlertsOn(w.nodeOf("n0").Annotations)
				require.Len(t, on, 1)
				require.Equal(t, w.ended[0].ID, on[0].Cancelled.ID)
				w.do(func() {
					w.remake("n0", providerID)
					w.machines["n0"].backdated = true
					w.ail("n0", 9)
				})
				w.pass(5 * time.Minute)
				require.Equal(t, calls, w.callCount())
			})
		})
	}
}

// TestTheCooldownStaysWithANodeWithoutAProviderID: nothing shows that another machine has
// registered under its name. So it counts as the same machine, for limits.repairsWindow. Another
// machine, known by its spec.providerID, is repaired at once.
func TestTheCooldownStaysWithANodeWithoutAProviderID(t *testing.T) {
	for name, c := range map[string]struct {
		was, is string
		window  time.Duration
		held    bool
	}{
		"neither has one":                      {"", "", 24 * time.Hour, true},
		"neither has one, the window is short": {"", "", time.Minute, false},
		"the same":                             {"civo://m0", "civo://m0", 24 * time.Hour, true},
		"another":                              {"civo://m0", "civo://another", 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Policies[0].Cooldown, conf.Limits.RepairsWindow = 2*time.Hour, c.window
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.do(func() { w.leave("n0"); w.join("n0", c.was) })
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1) })
				require.True(t, w.until(20*time.Minute, func() bool { return len(w.ended) == 1 }))
				w.pass(2 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				w.do(func() { w.remake("n0", c.is); w.ail("n0", 1) })
				w.pass(5 * time.Minute)
				if !c.held {
					require.Equal(t, 2, w.callCount())
					return
				}
				require.Equal(t, 1, w.callCount())
				require.Equal(t, remediations.ReasonCooldown, w.recordOf("n0").Hold.Reason)
				w.pass(2 * time.Hour)
				require.Equal(t, 2, w.callCount(), "the control: the cooldown is over")
			})
		})
	}
}

// TestCordonAndTaintOfAnotherMachinesRepairAreRemoved: a Node is created again on another machine
// with the cordon and the out-of-service taint of a repair. Both are removed with its record. A
// cordon that another manager set, according to the Node's managedFields, stays.
func TestCordonAndTaintOfAnotherMachinesRepairAreRemoved(t *testing.T) {
	for by, stays := range map[string]bool{"drydock": false, "a backup": true} {
		t.Run("cordoned by "+by, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 99) })
				require.True(t, w.until(4*time.Hour, func() bool { return w.waitsForReplacement("n0") }))
				r := w.recordOf("n0").Clone()
				require.Equal(t, remediations.UndoCordon, r.Undo[0].Kind)
				marked := remediations.Instant(time.Now())
				r.Undo = append(r.Undo, remediations.Undo{Kind: remediations.UndoTaint, At: marked})
				w.do(func() {
					w.edit("n0", func(n *corev1.Node) {
						n.Annotations[remediations.NodeRepairKey] = r.Encode()
						n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: remediations.OutOfServiceTaint, TimeAdded: &metav1.Time{Time: marked}})
					})
					w.remake("n0", "civo://another")
					w.machines["n0"].cordonedBy, w.machines["n0"].marked = by, marked
				})
				require.True(t, at(w, func() bool { return w.outOfService("n0") }))
				w.pass(time.Minute)
				require.Equal(t, remediations.OutcomeSuperseded, w.endOf("n0", r.ID))
				require.False(t, at(w, func() bool { return w.outOfService("n0") }))
				require.Equal(t, stays, w.nodeOf("n0").Spec.Unschedulable)
			})
		})
	}
}
