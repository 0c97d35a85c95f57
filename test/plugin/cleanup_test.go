package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// cleans are the rights that `cleanup` needs.
const cleans = `[{apiGroups: [""], resources: [nodes], verbs: [get, list, patch]}, {apiGroups: [""], resources: [configmaps], verbs: [get, list]}, {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}, {apiGroups: [drydock.dev], resources: [repairs], verbs: [reset]}]`

// patchAs changes a Node with this field manager.
func (s *terminal) patchAs(manager, node string, change map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(change)
	require.NoError(s.t, err)
	_, err = s.lab.Client().CoreV1().Nodes().Patch(context.WithoutCancel(s.t.Context()), node, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager})
	require.NoError(s.t, err)
}

func cordon(on bool) map[string]any {
	return map[string]any{"spec": map[string]any{"unschedulable": on}}
}

// versions returns the resourceVersions of all nodes. They stay the same if nothing is written.
func (s *terminal) versions() map[string]string {
	s.t.Helper()
	nodes, err := s.lab.Client().CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	out := map[string]string{}
	for _, n := range nodes.Items {
		out[n.Name] = n.ResourceVersion
	}
	return out
}

func (s *terminal) lease(holder string) {
	s.t.Helper()
	require.NoError(s.t, s.lab.Apply(s.t.Context(), fmt.Appendf(nil, `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: drydock, namespace: %s}
spec: {holderIdentity: %q, leaseDurationSeconds: 600, renewTime: %q}
`, lab.Namespace, holder, time.Now().UTC().Format(metav1.RFC3339Micro))))
}

// admission installs the chart's policy as for a Drydock that enforces. remove deletes it as `helm
// uninstall` does.
func (s *terminal) admission() (remove func()) {
	s.t.Helper()
	rendered, err := lab.RenderChart("drydock", lab.Namespace, map[string]any{"config": map[string]any{"mode": "enforce"}})
	require.NoError(s.t, err)
	require.NoError(s.t, s.lab.Apply(s.t.Context(), []byte(rendered["drydock/templates/validatingadmissionpolicy.yaml"])))
	forged := func() error {
		text := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"{}"}}}`, remediations.AlertPrefix+"0000000000000000")
		_, err := s.lab.Client().CoreV1().Nodes().Patch(s.t.Context(), "node-5", types.MergePatchType, text, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	require.Eventually(s.t, func() bool { return forged() != nil }, lab.Patience, 50*time.Millisecond, "the policy is in force")
	return func() {
		policies := s.lab.Client().AdmissionregistrationV1()
		require.NoError(s.t, policies.ValidatingAdmissionPolicyBindings().Delete(s.t.Context(), "drydock", metav1.DeleteOptions{}))
		require.NoError(s.t, policies.ValidatingAdmissionPolicies().Delete(s.t.Context(), "drydock", metav1.DeleteOptions{}))
		require.Eventually(s.t, func() bool { return forged() == nil }, lab.Patience, 50*time.Millisecond, "the policy is gone")
	}
}

func TestCleanupLeavesNothingOfDrydockOnTheNodes(t *testing.T) {
	admin := newTerminal(t)
	at := time.Now().UTC().Truncate(time.Second)
	admin.patch("node-0", map[string]any{
		remediations.AlertPrefix + "9f2c0e5b6d1a4c33": "{}", remediations.HistoryKey: "[]", remediations.RequestKey: "remediation/reboot",
		remediations.PauseKey: "true disk",
	}, map[string]any{remediations.ExcludeLabel: "true"})
	// Both records say that the cordon is Drydock's. Since then a person has cordoned node-2 again.
	undo := []remediations.Undo{{Kind: remediations.UndoCordon, At: at}, {Kind: remediations.UndoTaint, Key: remediations.OutOfServiceTaint, At: at}}
	for _, name := range []string{"node-1", "node-2"} {
		r := admin.record(name, "cccccc", remediations.PhaseExhausted)
		r.Undo = undo
		admin.patch(name, map[string]any{remediations.NodeRepairKey: r.Encode()}, map[string]any{})
		admin.patchAs(remediations.FieldManager, name, cordon(true))
	}
	admin.patchAs("kubectl", "node-2", cordon(false))
	admin.patchAs("kubectl", "node-2", cordon(true))
	others := map[string]any{"key": "example.com/rack", "effect": "NoSchedule"}
	admin.patchAs(remediations.FieldManager, "node-1", map[string]any{"spec": map[string]any{"taints": []any{
		others, map[string]any{"key": remediations.OutOfServiceTaint, "value": "nodeshutdown", "effect": "NoExecute", "timeAdded": at.Format(time.RFC3339)},
	}}})
	admin.record("node-3", "aaaaaa", remediations.PhaseVerifying)
	admin.lease("drydock-0")
	remove := admin.admission()
	t.Cleanup(func() {
		for _, name := range []string{"node-0", "node-1", "node-2"} {
			admin.patchAs("kubectl", name, map[string]any{"spec": map[string]any{"unschedulable": nil, "taints": nil}})
			admin.patch(name, map[string]any{}, map[string]any{remediations.ExcludeLabel: nil})
		}
	})

	s := admin.as("cleaner", cleans, "")
	before := admin.versions()
	code, stdout, stderr := s.typed("cleanup")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "node-1: would remove repair.drydock.dev/node (repair cccccc by policy node-not-ready, Exhausted), label drydock.dev/phase, Drydock's cordon, taint node.kubernetes.io/out-of-service\n")
	require.Contains(t, stdout, "Not yet: Drydock still runs and would write again: drydock-0 renewed Lease drydock/drydock")
	require.Contains(t, stdout, "Not yet: repair aaaaaa by policy node-not-ready is in flight on node-3")
	require.Equal(t, before, admin.versions(), "a dry run")

	code, _, stderr = s.typed("cleanup --yes")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "Drydock still runs")
	admin.lease("")
	code, _, stderr = s.typed("cleanup --yes")
	require.Equal(t, 1, code)
	require.NotContains(t, stderr, "Drydock still runs")
	require.Contains(t, stderr, "repair aaaaaa by policy node-not-ready is in flight on node-3")
	require.Equal(t, before, admin.versions(), "refused as a whole")

	// While admission is still installed, `cleanup` may remove everything except the record of the
	// repair in flight.
	code, stdout, stderr = s.typed("cleanup --yes --force")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "node-3 is under repair aaaaaa by policy node-not-ready")
	require.Contains(t, stderr, "removing Drydock's own keys would collide with the repair")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	require.Contains(t, stdout, "node-1: removed ")
	require.Contains(t, admin.node("node-3").Annotations, remediations.NodeRepairKey)

	remove()
	code, stdout, stderr = s.typed("cleanup --yes --force")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "node-3: removed repair.drydock.dev/node (repair aaaaaa by policy node-not-ready, Verifying), label drydock.dev/phase\n")
	require.Contains(t, stdout, "kubectl --context lab delete configmap drydock-ledger -n drydock\n")
	require.Contains(t, stdout, "kubectl --context lab delete lease drydock -n drydock\n")

	nodes, err := admin.lab.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, n := range nodes.Items {
		for key := range n.Annotations {
			require.True(t, key == remediations.PauseKey || !remediations.Relevant(key), "%s has %s", n.Name, key)
		}
		require.NotContains(t, n.Labels, remediations.PhaseLabel, n.Name)
		require.Equal(t, n.Name == "node-2", n.Spec.Unschedulable, "%s: a person's cordon stays", n.Name)
	}
	require.Equal(t, "true disk", admin.node("node-0").Annotations[remediations.PauseKey])
	require.Equal(t, "true", admin.node("node-0").Labels[remediations.ExcludeLabel])
	var taints []string
	for _, taint := range admin.node("node-1").Spec.Taints {
		taints = append(taints, taint.Key)
	}
	require.Contains(t, taints, "example.com/rack")
	require.NotContains(t, taints, remediations.OutOfServiceTaint)
}
