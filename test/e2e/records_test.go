package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// An unreadable record holds only its node, and stays unchanged until a person drops it.
func TestAMalformedRecordHoldsItsNodeAlone(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: config(policy(nil))})
	const bytes = "v7 phase=Dreaming"
	y.annotate("node-30", remediations.NodeRepairKey, bytes)
	y.awaitEvent("node-30", "RepairHeld", "RecordMalformed: ")

	y.fail("node-30")
	y.await("node-30", "its alert on it", func(n *corev1.Node) bool { return len(remediations.AlertsOn(n.Annotations)) > 0 })
	y.fail("node-31")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-31").Outcome, "other nodes are unaffected")
	require.Zero(t, y.reboots("node-30"))
	require.Equal(t, bytes, y.node("node-30").Annotations[remediations.NodeRepairKey], "the bytes stay")

	y.annotate("node-30", remediations.ResetKey, "true")
	e := y.entry("node-30", func(e remediations.Entry) bool { return e.Outcome == remediations.OutcomeRecovered })
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.Equal(t, bytes, y.entry("node-30", func(e remediations.Entry) bool { return e.Outcome == remediations.OutcomeCancelled }).Why)
	y.awaitEvent("node-30", "RepairCancelled", bytes)
}

// An unreadable ledger holds everything. A ledger that a person deletes is created again from the
// Nodes.
func TestALedgerThatCannotBeReadHoldsEverything(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.fail("node-32")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-32").Outcome)
	maps := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace)
	t.Cleanup(func() {
		_ = maps.Delete(context.WithoutCancel(t.Context()), "drydock-ledger", metav1.DeleteOptions{})
	})
	_, err := maps.Patch(t.Context(), "drydock-ledger", types.MergePatchType, []byte(`{"data":{"slots":"nonsense"}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	y.fail("node-33")
	y.awaitEvent("drydock-ledger", "RepairHeld", "its \"slots\" is not readable")
	require.Zero(t, y.reboots("node-33"))
	y.measures(d, `drydock_holds{policy="node-not-ready",reason="RecordMalformed"} 1`)

	require.NoError(t, maps.Delete(t.Context(), "drydock-ledger", metav1.DeleteOptions{}))
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-33").Outcome)
	require.Equal(t, 1, y.reboots("node-33"))
}

// A policy with approval waits until a person approves this very repair.
func TestApprovalIsAwaited(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: config(policy(map[string]any{"approval": true}))})
	y.fail("node-34")
	r := y.held("node-34", remediations.ReasonAwaitingApproval)
	require.Contains(t, r.Hold.Message, remediations.ApproveKey+"="+r.ID)
	y.annotate("node-34", remediations.ApproveKey, "another")
	y.awaitEvent("node-34", "AnnotationInvalid", "another")
	require.Zero(t, y.reboots("node-34"))

	y.annotate("node-34", remediations.ApproveKey, r.ID)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-34").Outcome)
	require.Equal(t, 1, y.reboots("node-34"))
	require.NotContains(t, y.node("node-34").Annotations, remediations.ApproveKey)
}

// A pause also holds if it cannot be read. When it is removed, the repair continues.
func TestAPauseHoldsEvenUnreadable(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.annotate("node-35", remediations.PauseKey, "tomorrow, perhaps")
	y.fail("node-35")
	y.held("node-35", remediations.ReasonPaused)
	y.awaitEvent("node-35", "AnnotationInvalid", "write \"true\", or an end time like")
	require.Zero(t, y.reboots("node-35"))

	y.unannotate("node-35", remediations.PauseKey)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-35").Outcome)
	require.Equal(t, 1, y.reboots("node-35"))
}

// The Node is deleted during its repair. The slot is freed, and the next node's repair continues.
func TestANodeDeletedUnderItsRepair(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	machine := y.node("node-36")
	t.Cleanup(func() {
		require.NoError(t, y.lab.AddNode(context.WithoutCancel(t.Context()), lab.NodeSpec{
			Name: machine.Name, ProviderID: machine.Spec.ProviderID, Zone: machine.Labels[corev1.LabelTopologyZone],
		}))
	})
	held := make(chan []ledger.Slot, 1)
	y.civo.OnReboot(func() {
		cm, err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Get(t.Context(), "drydock-ledger", metav1.GetOptions{})
		if err == nil {
			if l, err := ledger.Decode(cm.Data); err == nil {
				held <- l.Slots
			}
		}
		_ = y.lab.Client().CoreV1().Nodes().Delete(t.Context(), "node-36", metav1.DeleteOptions{})
	})
	y.fail("node-36")
	slots := <-held
	require.Len(t, slots, 1)
	require.Equal(t, "node-36", slots[0].Node)
	y.ledger("the slot is free again", func(l *ledger.Ledger) bool { return len(l.Slots) == 0 })
	y.measures(d, `drydock_repairs_total{outcome="Superseded",policy="node-not-ready"} 1`)
	y.civo.OnReboot(nil)
	y.fail("node-37")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-37").Outcome)
}
