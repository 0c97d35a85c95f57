package admission

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/admission/requests"
)

// heartbeat writes what a kubelet writes regularly: its status, its labels and its lease.
func heartbeat(t *testing.T, kubelet kubernetes.Interface, node string) {
	t.Helper()
	ctx := t.Context()
	_, err := kubelet.CoreV1().Nodes().PatchStatus(ctx, node, fmt.Appendf(nil, `{"status":{"conditions":[{"type":"MemoryPressure","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339)))
	require.NoError(t, err)
	_, err = kubelet.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"metadata":{"labels":{"beta.kubernetes.io/os":"linux"},"annotations":{"volumes.kubernetes.io/controller-managed-attach-detach":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	leases := kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	require.NoError(t, err)
	_, err = leases.Patch(ctx, lease.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, metav1.NowMicro().UTC().Format("2006-01-02T15:04:05.000000Z")), metav1.PatchOptions{})
	require.NoError(t, err)
}

// TestKubelets uses the client certificate of each node. What a kubelet must write is allowed and
// never reaches the webhook. Drydock's own keys are denied to it.
func TestKubelets(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "enforce")
	const n = "n5"
	kubelet, err := l.NodeClient(n)
	require.NoError(t, err)
	for _, phase := range []remediations.Phase{"", remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted} {
		y.becomes(n, phase)
		before := int(y.metric("drydock_admission_duration_seconds_count"))
		heartbeat(t, kubelet, n)
		require.Equal(t, before, int(y.metric("drydock_admission_duration_seconds_count")), "a heartbeat was asked about")
	}

	y.becomes(n, remediations.PhaseVerifying)
	record := requests.Record(remediations.PhaseActing).Encode()
	for name, patch := range map[string]string{
		"asks for its own repair": fmt.Sprintf(`{"metadata":{"annotations":{%q:"remediation/reboot"}}}`, remediations.RequestKey),
		"forges a record":         fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, remediations.NodeRepairKey, record),
		"takes the label off":     fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, remediations.PhaseLabel),
		"takes the record off":    fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, remediations.NodeRepairKey),
		"breaks the glass":        fmt.Sprintf(`{"metadata":{"annotations":{%q:"why"}}}`, remediations.BreakGlassKey),
	} {
		for _, sub := range [][]string{nil, {"status"}} {
			_, err := kubelet.CoreV1().Nodes().Patch(t.Context(), n, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
			require.Equal(t, "policy", denier(err), "%s through %v: %v", name, sub, err)
		}
	}

	// Kubernetes itself denies writes of another node's status. The control is the heartbeat above.
	_, err = kubelet.CoreV1().Nodes().Patch(t.Context(), requests.Node, types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	// The webhook alone gives the same result. Without the policy it is also called for kubelets.
	require.NoError(t, l.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), "drydock", metav1.DeleteOptions{}))
	await(t, "the policy to be forgotten", func() bool { return forged(t, l) == "webhook" })
	for _, sub := range [][]string{nil, {"status"}} {
		_, err := kubelet.CoreV1().Nodes().Patch(t.Context(), n, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, remediations.PhaseLabel), metav1.PatchOptions{}, sub...)
		require.Equal(t, "webhook", denier(err), "%v", err)
		require.ErrorContains(t, err, "node identities must not change")
	}
	y.becomes(n, "")
}

// TestNodeControllerTaints: kube-controller-manager taints a node that is lost during a repair, and
// removes the taints when the node is back. Its controllers write with accounts of their own, or
// all as the manager.
func TestNodeControllerTaints(t *testing.T) {
	for name, shared := range map[string]bool{"each controller by its own account": false, "all as the manager": true} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t, lab.Options{Components: lab.ControlPlane, NodeGrace: 8 * time.Second, NodeSpecs: []lab.NodeSpec{{Name: requests.Node}, {Name: "n2"}, {Name: "n3"}}, SharedControllerIdentity: shared})
			y := newYard(t, l, "enforce")
			y.becomes(requests.Node, remediations.PhaseVerifying)
			l.Break(requests.Node)
			unreachable := func() (taints int) {
				for _, taint := range y.node(requests.Node).Spec.Taints {
					if taint.Key == corev1.TaintNodeUnreachable {
						taints++
					}
				}
				return taints
			}
			await(t, "both taints", func() bool { return unreachable() == 2 })
			require.NoError(t, l.Heal(context.WithoutCancel(t.Context()), requests.Node, ""))
			await(t, "them to go", func() bool { return unreachable() == 0 })
			manager := false
			for _, f := range y.managers(requests.Node) {
				manager = manager || f == "kube-controller-manager"
			}
			require.True(t, manager, "the control")
			y.isDenied("cordon", requests.Node)
		})
	}
}

func (y *yard) managers(node string) []string {
	var out []string
	for _, f := range y.node(node).ManagedFields {
		out = append(out, f.Manager)
	}
	return out
}
