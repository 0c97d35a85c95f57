package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Prometheus dies while a reboot is verified, as if it ran on that very node. After some time its
// alerts resolve by themselves, which proves nothing. When Prometheus is back, the cure is proven.
func TestADeadPrometheusProvesNothing(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: config(policy(map[string]any{"plan": []any{map[string]any{"step": "reboot", "wait": patience}}}))})
	prometheus := y.lab.Process("prometheus")
	t.Cleanup(func() {
		select {
		case <-prometheus.Done():
			require.NoError(t, prometheus.Start(context.WithoutCancel(t.Context())))
		default:
		}
	})
	y.civo.OnReboot(prometheus.Kill)

	y.fail("node-20")
	y.await("node-20", "back with a new boot", func(n *corev1.Node) bool {
		r := remediations.ReadJournal(n).Record
		return r != nil && r.Phase == remediations.PhaseVerifying && n.Status.NodeInfo.BootID != r.Intent.BootID
	})
	// Drydock was not blind before, because it has rebooted.
	y.ledger("Drydock says that it is blind", func(l *ledger.Ledger) bool { return l.Status.Blind != "" })
	r := remediations.ReadJournal(y.node("node-20")).Record
	require.NotNil(t, r, "the alert is gone, but so is its source")
	require.Equal(t, remediations.PhaseVerifying, r.Phase)

	require.NoError(t, prometheus.Start(t.Context()))
	e := y.ended("node-20")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, 1, y.reboots("node-20"))
}

// Both Alertmanagers die with the reboot, as if they ran on that node. The reboot is verified when
// one of them is back.
func TestTheRebootTakesAlertmanagerAlong(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: config(policy(nil))})
	t.Cleanup(y.startAlertmanagers)
	y.civo.OnReboot(func() {
		for i := range 2 {
			y.lab.StopAlertmanager(i)
		}
	})
	y.fail("node-21")
	y.await("node-21", "back with a new boot", func(n *corev1.Node) bool {
		r := remediations.ReadJournal(n).Record
		return r != nil && r.Phase == remediations.PhaseVerifying && n.Status.NodeInfo.BootID != r.Intent.BootID
	})
	y.startAlertmanagers()
	e := y.ended("node-21")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, 1, y.reboots("node-21"))
}

// Drydock reboots the node that it runs on, and dies with it. The next leader finds the record on
// the Node.
func TestDrydockRebootsItsOwnNode(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.civo.OnReboot(func() { d.Kill() })
	y.fail("node-22")
	lab.AwaitEnd(t, d.Process)
	y.civo.OnReboot(nil)
	y.run(lab.DrydockOptions{Config: config(policy(nil)), Name: "drydock-elsewhere"})
	e := y.ended("node-22")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Len(t, y.civo.Done(civosim.HardReboots), 1)
}
