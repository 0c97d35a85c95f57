package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// TestAlertThatIsRoutedElsewhereDoesNothing: it affects neither the node nor the breaker, and
// people see that it is not routed to Drydock. The same alert, routed to Drydock, reboots the node.
func TestAlertThatIsRoutedElsewhereDoesNothing(t *testing.T) {
	for name, receiver := range map[string]string{"elsewhere": "drydock", "here, the control": "null"} {
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			c.Policies[0].Witness = &signs.Witness{None: true} // the nodes are healthy
			c.Receiver, c.Limits.Concurrent.Value = receiver, 6
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() {
					for _, n := range nodeNames[:3] {
						w.machines[n].forged = true
					}
				})
				w.pass(2 * time.Minute)
				held := ""
				for _, e := range at(w, func() []Event { return w.told }) {
					if e.Reason == "RepairHeld" && strings.Contains(e.Note, "is not routed to receiver") {
						held = e.Note
					}
				}
				if receiver == "null" {
					require.Positive(t, w.callCount())
					return
				}
				require.Zero(t, w.callCount())
				require.Empty(t, remediations.AlertsOn(w.nodeOf("n0").Annotations))
				require.Equal(t, `AlertUnconfirmed: the alert "NodeNotReady" is active, but it is not routed to receiver "drydock" (alertmanager.receiver), so policy node-not-ready does nothing for it; if it should, correct Alertmanager's route or alertmanager.receiver`, held)
				l := at(w, func() *ledger.Ledger { return mustLedger(w) })
				require.Empty(t, l.Status.Breakers, "half of the fleet is not ill because somebody says so")
				require.Contains(t, l.Status.Holds[remediations.ReasonAlertUnconfirmed], "NodeNotReady", "kubectl drydock status shows it")
				w.do(func() {
					for _, n := range nodeNames[:3] {
						w.machines[n].forged = false
					}
				})
				w.pass(time.Minute)
				require.Empty(t, at(w, func() map[remediations.Reason]string { return mustLedger(w).Status.Holds }))
			})
		})
	}
}
