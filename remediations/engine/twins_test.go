package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestTwoNodesOfOneMachineAreLeftAlone: the machine of a node that is not Ready has registered
// under another name, and is healthy. Neither a reboot nor a replacement reaches it. When the old
// name is the only one again, the repair continues.
func TestTwoNodesOfOneMachineAreLeftAlone(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.join("n60", "civo://m0") })
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		w.pass(time.Hour)
		require.Zero(t, w.callCount())
		require.False(t, w.nodeOf("n0").Spec.Unschedulable, "it is not drained either")
		h := w.recordOf("n0").Hold
		require.Equal(t, remediations.ReasonProviderAbsent, h.Reason)
		require.Equal(t, `Nodes n0 and n60 have the same spec.providerID "civo://m0", so a step on one would reach the machine of the other; delete the Node that is no longer the machine's: kubectl delete node NAME`, h.Message)
		w.do(func() { w.leave("n60") }) // the control
		w.pass(10 * time.Minute)
		require.Equal(t, []string{"reboot"}, w.callsOf())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}

// TestANodeWhoseRebootCannotBeProvenIsNotRebooted: Nodes that are containers share the boot ID of
// their host, and some report none. Drydock reports that before the first reboot, not after all
// attempts.
func TestANodeWhoseRebootCannotBeProvenIsNotRebooted(t *testing.T) {
	for name, boot := range map[string]string{"two Nodes have one boot ID": "n1-boot1", "the Node reports no boot ID": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() {
					w.machines["n0"].bootID = &boot
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(time.Hour)
				require.Zero(t, w.callCount())
				h := w.recordOf("n0").Hold
				require.Equal(t, remediations.ReasonProviderAbsent, h.Reason)
				require.Contains(t, h.Message, "a reboot of Node n0 could not be proven")
				w.do(func() { w.machines["n0"].bootID = nil; w.report(w.machines["n0"]) }) // the control
				w.pass(10 * time.Minute)
				require.Equal(t, []string{"reboot"}, w.callsOf())
			})
		})
	}
}

// TestTheLastLookSeesTheTwin: the other Node registered after the intent.
func TestTheLastLookSeesTheTwin(t *testing.T) {
	for name, providerID := range map[string]string{"of the same machine": "civo://m0", "of another machine, the control": "civo://m60"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.mood.before = 6 * time.Second
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				require.True(t, w.until(5*time.Minute, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseActing }))
				w.do(func() { w.join("n60", providerID) })
				w.pass(2 * time.Minute)
				if providerID == "civo://m60" {
					require.Equal(t, 1, w.callCount())
					return
				}
				require.Zero(t, w.callCount())
				require.Contains(t, w.recordOf("n0").Hold.Message, "Nodes n0 and n60 have the same spec.providerID")
			})
		})
	}
}
