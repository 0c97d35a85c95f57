package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// helpless makes the provider one whose reboots cure nothing, and whose replacements cure.
func (y *yard) helpless() {
	y.t.Helper()
	y.machines(lab.CivoOptions{
		RebootTime: time.Second, DeleteTime: 2 * time.Second, BuildTime: 2 * time.Second,
		KeepHostname: true, // the other tests know the nodes by their names
		Cures:        func(civosim.Instance, civosim.Op) bool { return false },
	})
}

// wholePlan is the plan for a node without a GPU, with short times.
func wholePlan(over map[string]any) map[string]any {
	p := policy(map[string]any{"plan": []any{
		map[string]any{"step": "reboot", "wait": "3s"},
		map[string]any{"step": "drain", "timeout": patience},
		map[string]any{"step": "replace", "wait": patience},
	}})
	for k, v := range over {
		p[k] = v
	}
	return p
}

// app runs one replica of an app on the node, with a PodDisruptionBudget that forbids its eviction.
// free deletes the budget. An evicted pod then ends at once. A kubelet that still works does that
// even if it reports that it is not Ready.
func (y *yard) app(name, node string) (free func()) {
	y.t.Helper()
	client, labels := y.lab.Client(), map[string]string{"app": name}
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	_, err := client.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(y.t, err)
	y.t.Cleanup(func() {
		_ = client.AppsV1().ReplicaSets("default").Delete(context.WithoutCancel(y.t.Context()), name, metav1.DeleteOptions{})
	})
	_, err = client.PolicyV1().PodDisruptionBudgets("default").Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{})
	require.NoError(y.t, err)
	free = func() {
		_ = client.PolicyV1().PodDisruptionBudgets("default").Delete(context.WithoutCancel(y.t.Context()), name, metav1.DeleteOptions{})
		go y.endPods(name)
	}
	y.t.Cleanup(func() {
		_ = client.PolicyV1().PodDisruptionBudgets("default").Delete(context.WithoutCancel(y.t.Context()), name, metav1.DeleteOptions{})
	})
	bound := false
	require.Eventually(y.t, func() bool {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil || len(pods.Items) == 0 {
			return false
		}
		if !bound {
			err := client.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
			bound = err == nil
		}
		b, err := client.PolicyV1().PodDisruptionBudgets("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 1
	}, lab.Patience, 200*time.Millisecond, "the pod of %s runs, and its budget knows", name)
	return free
}

// endPods ends the app's evicted pods at once, until the test has ended.
func (y *yard) endPods(app string) {
	pods := y.lab.Client().CoreV1().Pods("default")
	w, err := pods.Watch(y.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if pod, ok := e.Object.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" {
			_ = pods.Delete(y.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
		}
	}
}

func (y *yard) podsOn(node string) int {
	y.t.Helper()
	pods, err := y.lab.Client().CoreV1().Pods("").List(y.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(y.t, err)
	return len(pods.Items)
}

// S3-7, S3-15: a reboot does not help, a budget holds the drain and then allows it, the machine is
// replaced, and the cure is proven on the new machine. Drydock dies when the provider has begun the
// replacement, which changes nothing.
func TestARebootThatDoesNotHelpEndsInAnotherMachine(t *testing.T) {
	y := newYard(t)
	y.helpless()
	d := y.run(lab.DrydockOptions{Config: config(wholePlan(nil))})
	free := y.app("held", "node-30")
	old := y.node("node-30")

	y.fail("node-30")
	n := y.await("node-30", "a drain that a budget holds back", func(n *corev1.Node) bool {
		r := remediations.ReadJournal(n).Record
		return r != nil && r.Step.Name == "drain" && r.Note != ""
	})
	require.Contains(t, remediations.ReadJournal(n).Record.Note, "PodDisruptionBudget default/held")
	require.True(t, n.Spec.Unschedulable)
	y.awaitEvent("node-30", "RepairBlocked", "PodDisruptionBudget default/held")
	require.Equal(t, 1, y.podsOn("node-30"))
	require.Empty(t, y.civo.CallsTo(civosim.Recycle), "nothing is replaced that is not empty")

	y.civo.On(civosim.Recycle, func() { d.Kill() })
	free()
	lab.AwaitEnd(t, d.Process)
	y.civo.On(civosim.Recycle, nil)
	require.NoError(t, y.lab.Restart(t.Context(), d))
	e := y.ended("node-30")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1", "drain:1", "replace:1"}, e.Steps.Texts())
	fresh := y.node("node-30")
	require.NotEqual(t, old.UID, fresh.UID)
	require.NotEqual(t, old.Spec.ProviderID, fresh.Spec.ProviderID)
	require.False(t, fresh.Spec.Unschedulable)
	require.NotContains(t, fresh.Labels, remediations.PhaseLabel)
	require.Len(t, y.civo.Done(civosim.Recycle), 1, "at most once, whoever died")
	y.ledger("nothing is left of it", func(l *ledger.Ledger) bool { return len(l.Slots) == 0 && len(l.Orphans) == 0 })
	y.awaitEvent("node-30", "RepairRecovered", "replace:1")
	y.noSecret()
}

// S3-15: a GPU node is rebooted as often as the policy allows, and then left to a person. It is
// never replaced.
func TestAGPUNodeEndsExhausted(t *testing.T) {
	y := newYard(t)
	y.helpless()
	gpu := policy(map[string]any{
		"name": "gpu-node-not-ready", "nodeSelector": map[string]any{"matchLabels": map[string]any{"nvidia.com/gpu.count": "8"}},
		"plan": []any{map[string]any{"step": "reboot", "wait": "2s", "attempts": 2}},
	})
	y.run(lab.DrydockOptions{Config: map[string]any{"policies": []any{gpu, wholePlan(nil)}}})
	y.label("node-31", "nvidia.com/gpu.count", "8")
	t.Cleanup(func() { y.label("node-31", "nvidia.com/gpu.count", nil) })

	y.fail("node-31")
	e := y.ended("node-31")

	require.Equal(t, remediations.OutcomeExhausted, e.Outcome)
	require.Equal(t, []string{"reboot:1", "reboot:2"}, e.Steps.Texts())
	require.Empty(t, y.civo.CallsTo(civosim.Recycle))
	require.True(t, y.node("node-31").Spec.Unschedulable)
	// The control: with the same fault, a node without a GPU gets another machine.
	y.fail("node-32")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-32").Outcome)
	require.Len(t, y.civo.Done(civosim.Recycle), 1)
}

// If a person has cordoned the node, Drydock does not touch it. The cordon is still there when
// everything has ended.
func TestACordonOfAPersonIsNeverRemoved(t *testing.T) {
	y := newYard(t)
	y.helpless()
	y.run(lab.DrydockOptions{Config: config(wholePlan(nil))})
	cordon := func(yes bool) {
		_, err := y.lab.Client().CoreV1().Nodes().Patch(t.Context(), "node-33", types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, yes)), metav1.PatchOptions{FieldManager: "kubectl-cordon"})
		require.NoError(t, err)
	}
	cordon(true)
	y.fail("node-33")
	y.held("node-33", remediations.ReasonCordonedByOther)
	require.True(t, y.node("node-33").Spec.Unschedulable)
	require.Empty(t, y.civo.CallsTo(civosim.HardReboots))
	cordon(false)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-33").Outcome, "uncordoned, it is repaired")
}

// A silence during a drain stops the evictions. When the silence ends, the drain continues.
func TestAPauseInMidDrainStopsIt(t *testing.T) {
	y := newYard(t)
	y.helpless()
	y.run(lab.DrydockOptions{Config: config(wholePlan(nil))})
	free := y.app("paused", "node-34")
	y.fail("node-34")
	y.await("node-34", "the drain", func(n *corev1.Node) bool {
		r := remediations.ReadJournal(n).Record
		return r != nil && r.Step.Name == "drain" && r.Note != ""
	})
	y.annotate("node-34", remediations.PauseKey, "true looking at it")
	r := y.held("node-34", remediations.ReasonPaused)
	require.Equal(t, remediations.PhasePending, r.Phase)
	y.ledger("its slot is free", func(l *ledger.Ledger) bool { return len(l.Slots) == 0 })
	free()
	require.Never(t, func() bool { return y.podsOn("node-34") == 0 }, 8*time.Second, time.Second, "no eviction while it is paused")
	y.unannotate("node-34", remediations.PauseKey)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-34").Outcome)
}

// A configuration error at the provider leads to a message that says what is wrong, and to a hold.
// It costs no attempt.
func TestAnUnknownClusterIsAHold(t *testing.T) {
	y := newYard(t)
	wrong := *y.civo
	wrong.ClusterID = "11111111-2222-4333-8444-555555555555"
	y.run(lab.DrydockOptions{Config: config(policy(nil)), Civo: &wrong})
	y.fail("node-35")
	y.ledger("the hold is told once for the fleet", func(l *ledger.Ledger) bool {
		return l.Status.Holds[remediations.ReasonProviderAbsent] != ""
	})
	y.awaitEvent("drydock-ledger", "RepairHeld", wrong.ClusterID)
	require.Empty(t, y.civo.CallsTo(civosim.HardReboots))
	require.Nil(t, remediations.ReadJournal(y.node("node-35")).Record, "nothing was begun")
}

// Civo refuses the reboot of one machine. Nothing was done, an Event says so, and the plan
// continues with the next attempt.
func TestARefusedRebootIsNotDoneAndThePlanContinues(t *testing.T) {
	y := newYard(t)
	y.civo.InjectNext(civosim.HardReboots, 1, civosim.Failed())
	d := y.run(lab.DrydockOptions{Config: config(twice("5s", nil))})
	before := y.node("node-38").Status.NodeInfo.BootID

	y.fail("node-38")
	e := y.ended("node-38")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1", "reboot:1"}, e.Steps.Texts())
	require.Len(t, y.civo.CallsTo(civosim.HardReboots), 2, "one request for each attempt")
	require.Equal(t, 1, y.reboots("node-38"))
	require.NotEqual(t, before, y.node("node-38").Status.NodeInfo.BootID)
	y.awaitEvent("node-38", "RepairVerifying", "nothing was done")
	y.measures(d, `drydock_steps_total{outcome="refused",step="reboot"} 1`)
	y.measures(d, `drydock_steps_total{outcome="accepted",step="reboot"} 1`)
}

// Civo reboots the machine and cuts the connection before it answers. The reboot may have been
// done, so it is not requested again. The new boot ID proves it.
func TestARebootWhoseAnswerIsLostIsOne(t *testing.T) {
	y := newYard(t)
	y.civo.InjectNext(civosim.HardReboots, 1, civosim.After(civosim.Cut()))
	d := y.run(lab.DrydockOptions{Config: config(twice(patience, nil))})
	before := y.node("node-39").Status.NodeInfo.BootID

	y.fail("node-39")
	e := y.ended("node-39")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.Len(t, y.civo.CallsTo(civosim.HardReboots), 1)
	require.Equal(t, 1, y.reboots("node-39"))
	require.NotEqual(t, before, y.node("node-39").Status.NodeInfo.BootID)
	y.awaitEvent("node-39", "RepairVerifying", "the call may have been done")
	y.measures(d, `drydock_steps_total{outcome="unknown",step="reboot"} 1`)
}
