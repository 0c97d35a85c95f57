package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestAWordOnTheNodeKeepsTheCordonUntilItEnds: the repair has ended, but a person has put the node
// on hold. Its cordon is removed when that hold ends, whichever engine leads then.
func TestAWordOnTheNodeKeepsTheCordonUntilItEnds(t *testing.T) {
	for name, word := range map[string]func(w *world){
		"nobody":      func(*world) {},
		"paused":      func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) },
		"excluded":    func(w *world) { w.hold("n0", func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" }) },
		"break-glass": func(w *world) { w.breakGlass("n0") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, planned("drain", "reboot"), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(10*time.Minute, func() bool { return len(w.calls) == 1 }))
				w.do(func() { word(w) })
				w.pass(10 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Empty(t, w.slots(t))
				require.Equal(t, name != "nobody", w.nodeOf("n0").Spec.Unschedulable)
				if name == "nobody" {
					return
				}
				require.Contains(t, w.toldOf("RepairRecovered")[0].Note, "keeps Drydock's cordon")
				w.restart(w.config)
				w.pass(time.Minute)
				require.True(t, w.nodeOf("n0").Spec.Unschedulable)
				w.do(func() { w.unhold("n0") })
				w.pass(time.Minute)
				require.False(t, w.nodeOf("n0").Spec.Unschedulable)
				require.Len(t, w.toldOf("RepairUndone"), 1)
				require.NotContains(t, w.nodeOf("n0").Annotations[remediations.HistoryKey], `"left"`)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(30 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes(), "a fresh fault is repaired")
			})
		})
	}
}

// TestOnExhaustedNone: an exhausted repair leaves no cordon behind if its policy wants none.
func TestOnExhaustedNone(t *testing.T) {
	for name, c := range map[string]struct{ cordon, paused bool }{
		"none": {}, "cordon": {cordon: true}, "none, while paused": {paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			conf := planned("drain", "reboot")
			conf.Policies[0].CordonExhausted = c.cordon
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.during(t, "reboot")
				w.pass(time.Minute)
				w.do(func() {
					if c.paused {
						w.hold("n0", edit(remediations.PauseKey, "true"))
					}
				})
				w.pass(10 * time.Minute)
				w.do(func() { w.unhold("n0") })
				w.pass(10 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
				require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
				require.Equal(t, c.cordon, w.nodeOf("n0").Spec.Unschedulable)
				w.do(func() { w.heal("n0") })
				w.pass(5 * time.Minute)
				w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
				w.pass(time.Minute)
				require.False(t, w.nodeOf("n0").Spec.Unschedulable)
			})
		})
	}
}

// TestResetOfANodeThatIsHeld: the reset forgets the repair, and its cordon is removed when the hold
// ends.
func TestResetOfANodeThatIsHeld(t *testing.T) {
	inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 9) })
		w.pass(20 * time.Minute)
		require.True(t, w.nodeOf("n0").Spec.Unschedulable)
		w.do(func() {
			w.heal("n0")
			w.hold("n0", edit(remediations.PauseKey, "true"))
			w.edit("n0", edit(remediations.ResetKey, "true"))
		})
		w.pass(time.Minute)
		require.Nil(t, w.recordOf("n0"))
		require.True(t, w.nodeOf("n0").Spec.Unschedulable)
		w.do(func() { w.unhold("n0") })
		w.pass(time.Minute)
		require.False(t, w.nodeOf("n0").Spec.Unschedulable)
	})
}
