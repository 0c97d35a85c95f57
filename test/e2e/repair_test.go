package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/marks"
)

// The whole chain: a kubelet becomes silent, kube-controller-manager notices it, Prometheus raises
// the alert, and Alertmanager posts it. Drydock reboots the machine once and proves the cure.
func TestASilentNodeIsRebootedAndProven(t *testing.T) {
	y := newYard(t)
	y.run(lab.DrydockOptions{Config: config(policy(nil))})
	before := y.node("node-0")

	y.lab.Break("node-0")
	e := y.ended("node-0")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.Equal(t, 1, y.reboots("node-0"))
	after := y.node("node-0")
	require.NotEqual(t, before.Status.NodeInfo.BootID, after.Status.NodeInfo.BootID)
	require.Equal(t, corev1.ConditionTrue, remediations.ReadyCondition(after).Status)
	require.NotContains(t, after.Annotations, remediations.NodeRepairKey)
	require.NotContains(t, after.Labels, remediations.PhaseLabel)
	require.False(t, after.Spec.Unschedulable)
	ledger, err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Get(t.Context(), "drydock-ledger", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, ledger.Data["repairs"], before.Spec.ProviderID)
	for _, reason := range []string{"RepairStarted", "RepairStepIssued", "RepairVerifying", "RepairRecovered"} {
		y.awaitEvent("node-0", reason, "")
	}
	y.reported("node-0", e)
	y.noSecret()
}

// Drydock dies when the provider has done the work and before its answer. The machine was rebooted
// once, and the next Drydock finds that out.
func TestKilledAfterTheCallBeforeTheAnswer(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.civo.OnReboot(func() { d.Kill() })

	y.fail("node-1")
	lab.AwaitEnd(t, d.Process)
	y.civo.OnReboot(nil)
	require.NoError(t, y.lab.Restart(t.Context(), d))
	e := y.ended("node-1")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.Equal(t, 1, y.reboots("node-1"))
}

// Drydock dies when its intent is on the Node and before the call. That attempt is never made, and
// the next one is. The marks that announce the repair to other systems come with the intent, and
// are removed at the end. A mark that a person set before stays.
func TestKilledBetweenTheIntentAndTheCall(t *testing.T) {
	y := newYard(t)
	proxy, err := y.lab.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	c := config(twice("5s", nil)) // it is unknown whether the first attempt was made, so its time must pass
	c["announce"] = []string{"cluster-autoscaler", "karpenter"}
	d := y.run(lab.DrydockOptions{Config: c, Server: proxy.URL()})
	proxy.After(killOn(d, "node-2", remediations.PhaseActing)) //nolint:bodyclose // the proxy closes it
	persons := marks.Mark{Kind: marks.Annotation, Key: announce.Annotations["cluster-autoscaler"][0], Values: []string{announce.Value}}
	y.mark("node-2", persons, true)
	t.Cleanup(func() { y.mark("node-2", persons, false) })

	y.fail("node-2")
	lab.AwaitEnd(t, d.Process)
	proxy.After(nil)
	r := remediations.ReadJournal(y.node("node-2")).Record
	require.NotNil(t, r, "the intent is on the Node")
	require.Equal(t, remediations.PhaseActing, r.Phase)
	require.Zero(t, y.reboots("node-2"), "the call was not made")
	require.Len(t, announced(y.node("node-2")), 3)
	y.selects("node-2")
	require.NoError(t, y.lab.Restart(t.Context(), d))
	e := y.ended("node-2")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1", "reboot:1"}, e.Steps.Texts())
	require.Equal(t, 1, y.reboots("node-2"), "the first was never made, the second once")
	require.Equal(t, []string{persons.Key}, announced(y.node("node-2")))
}

// The plan runs out on a machine that reboots without becoming healthy. The node is cordoned and
// left alone until a person says that it is repaired.
func TestExhaustedIsCordonedUntilReset(t *testing.T) {
	y := newYard(t)
	y.machines(lab.CivoOptions{Cures: func(civosim.Instance, civosim.Op) bool { return false }})
	short := policy(map[string]any{"plan": []any{map[string]any{"step": "reboot", "wait": "2s", "attempts": 2}}})
	y.run(lab.DrydockOptions{Config: config(short)})

	y.fail("node-3")
	e := y.ended("node-3")

	require.Equal(t, remediations.OutcomeExhausted, e.Outcome)
	require.Equal(t, []string{"reboot:1", "reboot:2"}, e.Steps.Texts())
	require.Equal(t, 2, y.reboots("node-3"))
	n := y.node("node-3")
	require.True(t, n.Spec.Unschedulable)
	require.Equal(t, "Exhausted", n.Labels[remediations.PhaseLabel])

	require.NoError(t, y.lab.Heal(t.Context(), "node-3", "a-new-boot"))
	y.annotate("node-3", remediations.ResetKey, "true")
	n = y.await("node-3", "the repair forgotten", func(n *corev1.Node) bool { return n.Labels[remediations.PhaseLabel] == "" })
	require.False(t, n.Spec.Unschedulable, "the cordon was Drydock's own")
	require.NotContains(t, n.Annotations, remediations.ResetKey, "the wish is consumed")
	require.NotContains(t, n.Annotations, remediations.NodeRepairKey)
}
