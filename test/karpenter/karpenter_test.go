package karpenter

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/owners"
)

// The NodePool makes Nodes when pods need them, as most do. So the evicted pod is the reason for
// the new Node. First the machine's BMC reboots it, which does not help.
func TestANodeClaimIsReplacedAndItsPodRunsAgain(t *testing.T) {
	newBusyEnv(t, "dynamic").ReplacedWhereNoRebootHelps("dynamic")
}

// The plan of a repair that a person requests begins with a drain. The drain is skipped, because
// Karpenter drains by itself. The Node is Ready, because Karpenter's test provider drains only
// Ready Nodes.
func TestKarpenterAloneDrainsANodeThatAPersonHasReplaced(t *testing.T) {
	e := newBusyEnv(t, "asked")
	e.Run(lab.DrydockOptions{}, owners.Step(owners.Proven))
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)
	e.EndEvicted("asked", old.Name)

	_, err := e.Lab.Client().CoreV1().Nodes().Patch(t.Context(), old.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"remediation/replace"}}}`, remediations.RequestKey), metav1.PatchOptions{})
	require.NoError(t, err)
	entry, fresh := e.Ended()

	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(t, []string{"replace:1"}, entry.Steps.Texts())
	e.RequireReplaced(old, fresh, object, "")
	e.Bind("asked", fresh.Name)
	evictions, err := e.Lab.Client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Evicted"})
	require.NoError(t, err)
	require.NotEmpty(t, evictions.Items, "Karpenter evicts the pod")
}

// The machine's pod fits on another node, so Karpenter makes no new Node. The machine and its Node
// are gone, no pod waits, and the repair has reached its goal. There is no Node that could show
// that, so an Event about Drydock itself does.
func TestNoMachineComesWhereThePodsFitElsewhere(t *testing.T) {
	const elsewhere = "node-3"
	var room atomic.Value
	e := newBusyEnvWith(t, "shrinks", &room)
	room.Store(elsewhere)
	e.Run(lab.DrydockOptions{}, owners.Step(owners.Proven))
	old, object := e.Node(e.Nodes[0]), e.Object(e.Nodes[0])

	e.Fail(old.Name)
	note := ""
	e.Eventually(func() bool { note = eventNote(e, "RepairRecovered", old.Name); return note != "" }, "the repair ends")

	require.Contains(t, note, "the machine is gone and nothing needs another one, and the alert is gone")
	there := metav1.ListOptions{LabelSelector: "app=shrinks", FieldSelector: "spec.nodeName=" + elsewhere}
	pods, err := e.Lab.Client().CoreV1().Pods("default").List(t.Context(), there)
	require.NoError(t, err)
	require.NotEmpty(t, pods.Items, "the pod had a node before the repair ended")
	e.Eventually(func() bool { return e.Running("shrinks") == elsewhere }, "the pod runs")
	require.Empty(t, claims(t, "shrinks"), "Karpenter made no other machine")
	require.Equal(t, map[string][]string{object: {"deleted"}}, e.Seen())
	nodes, err := e.Lab.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: lab.NodePoolLabel + "=shrinks"})
	require.NoError(t, err)
	require.Empty(t, nodes.Items)
	require.Empty(t, eventNote(e, "RepairExhausted", old.Name))
	require.Empty(t, kept(e).Slots)
	require.Empty(t, kept(e).Orphans)
}

// The machine's pod fits on no node, and the limits of the NodePool allow no new one. So nothing is
// proven, and people see which pod waits. With higher limits the new machine comes, and proves the
// replacement.
func TestAPodThatCannotHaveAMachineKeepsItFromBeingProven(t *testing.T) {
	e := newBusyEnv(t, "limited")
	limit := func(cpu string) {
		_, err := karpenter.Dynamic.Resource(lab.NodePools).Patch(t.Context(), "limited", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"limits":{"cpu":%q}}}`, cpu), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	limit("1") // less than what one machine has
	e.Run(lab.DrydockOptions{}, owners.Step(owners.Proven))
	old, object := e.Node(e.Nodes[0]), e.Object(e.Nodes[0])

	e.Fail(old.Name)
	waits := ""
	e.Eventually(func() bool {
		pod := e.Unbound("limited")
		for _, o := range kept(e).Orphans {
			waits = o.Record.Note
			if pod != "" && strings.Contains(waits, "Pod default/"+pod+" has had no node since") {
				return true
			}
		}
		return false
	}, "people read which pod waits")
	require.Contains(t, waits, "PodScheduled is False, Unschedulable")
	require.Contains(t, waits, "NodePool limited has no new NodeClaim with a Node")
	require.Empty(t, claims(t, "limited"))

	limit("100")
	entry, fresh := e.Ended()
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	e.RequireReplaced(old, fresh, object, "")
	require.Empty(t, eventNote(e, "RepairRecovered", old.Name), "it was not proven before")
	e.Bind("limited", fresh.Name)
}

func TestAFaultLeavesOneRequest(t *testing.T) {
	owners.AFaultLeavesOneRequest(t, func(t *testing.T, name string) *owners.Env { return newEnv(t, name, 2) })
}

// These are things that Karpenter itself would respect, and that a plain deletion of the NodeClaim
// would not. The hold names each of them, and nothing is deleted. Without it, the same NodeClaim is
// deleted.
func TestWhatKarpenterRespectsIsHeld(t *testing.T) {
	e := newEnv(t, "held", 1)
	old := e.Node(e.Nodes[0])
	disrupt := func(annotation, budget string) {
		_, err := e.Lab.Client().CoreV1().Nodes().Patch(t.Context(), old.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":%s}}}`, annotation), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = karpenter.Dynamic.Resource(lab.NodePools).Patch(t.Context(), "held", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"disruption":{"budgets":[{"nodes":%q}]}}}`, budget), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	says := func(parts ...string) func(string) bool {
		return func(message string) bool {
			for _, part := range parts {
				if !strings.Contains(message, part) {
					return false
				}
			}
			return true
		}
	}
	disrupt(`"true"`, "0")
	_, proxy := e.Behind(owners.Step(owners.Proven))
	requests := e.Counting(proxy)

	e.Fail(old.Name)
	e.Held(old.Name, says("karpenter.sh/do-not-disrupt"))
	disrupt("null", "0")
	e.Held(old.Name, func(message string) bool {
		return says("NodePool held allows no disruption now (a budget of 0)")(message) && !says("disrupted")(message)
	})
	require.Empty(t, e.Seen())
	require.Zero(t, requests())

	disrupt("null", "100%")
	entry, _ := e.Ended()
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(t, 1, requests())
	require.Equal(t, map[string][]string{string(old.OwnerReferences[0].UID): {"deleted"}}, e.Seen())
}

// Karpenter would replace a Node because its NodePool has changed. While Drydock repairs the Node
// and announces that, Karpenter does not, and reports that the annotation is the reason. When the
// repair has ended, it does.
func TestKarpenterLeavesANodeUnderRepairAlone(t *testing.T) {
	e := newBusyEnv(t, "drifted")
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)
	client := e.Lab.Client()
	_, err := client.CoreV1().Nodes().Patch(t.Context(), old.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"status":{"nodeInfo":{"systemUUID":%q}}}`, uuid.NewString()), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	back := make(chan struct{})
	bmc, err := e.Lab.StartBMC(t.Context(), old.Name, lab.BMCOptions{Back: back})
	require.NoError(t, err)
	t.Cleanup(bmc.Close)
	e.Run(lab.DrydockOptions{Config: m{
		"announce": []string{"karpenter"}, "providers": m{"redfish": m{"bmcs": []any{bmc.Config}}},
	}}, m{"step": "reboot", "wait": "10m", "attempts": 1})

	e.Fail(old.Name)
	e.Eventually(func() bool { return len(bmc.Resets()) == 1 }, "the machine reboots")
	_, err = karpenter.Dynamic.Resource(lab.NodePools).Patch(t.Context(), "drifted", types.MergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"labels":{"example.com/generation":"2"}}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	e.Eventually(func() bool {
		blocked, err := client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=DisruptionBlocked,involvedObject.name=" + old.Name})
		require.NoError(t, err)
		return slices.ContainsFunc(blocked.Items, func(event corev1.Event) bool { return strings.Contains(event.Message, "karpenter.sh/do-not-disrupt") })
	}, "Karpenter says why it leaves the Node alone")
	require.Empty(t, e.Seen())

	close(back)
	entry, _ := e.Ended()
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(t, []string{"reboot:1"}, entry.Steps.Texts())
	e.Eventually(func() bool { return slices.Contains(e.Seen()[object], "deleted") }, "Karpenter replaces the Node when the repair has ended")
	require.Len(t, bmc.Resets(), 1)
}
