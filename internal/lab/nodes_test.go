package lab_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
)

func TestAConditionStaysAsItIsSet(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	require.NoError(t, l.SetCondition(ctx, "node-0", "GPUFallen", corev1.ConditionTrue, "Xid79"))
	require.NoError(t, l.SetCondition(ctx, "node-0", corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	awaitNode(t, l, "node-0", func(n *corev1.Node) bool {
		return ready(n) == corev1.ConditionFalse && len(n.Spec.Taints) > 0
	})
	require.NoError(t, l.Heal(ctx, "node-0", ""))
	node, err := l.Client().CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.ConditionTrue, ready(node))
	require.NotEmpty(t, node.Status.NodeInfo.BootID)
	require.Contains(t, node.Status.Conditions, findCondition(node, "GPUFallen"))
	require.Equal(t, corev1.ConditionTrue, findCondition(node, "GPUFallen").Status)
}

func findCondition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// This machine may be too slow to renew a lease, and the second status of a kubelet that has just
// started may be lost. Afterwards the node must be as before: Ready, except for what a test has
// set.
func TestANodeThatWasOnlyThoughtToBeIllComesBackAsItWas(t *testing.T) {
	requireComesBackAsItWas(t, lab.Shared(t), corev1.ConditionUnknown)
	requireComesBackAsItWas(t, lab.Shared(t), corev1.ConditionFalse)
}

func requireComesBackAsItWas(t *testing.T, l *lab.Lab, ready corev1.ConditionStatus) {
	t.Helper()
	ctx, nodes := t.Context(), l.Client().CoreV1().Nodes()
	before, err := nodes.Get(ctx, "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, l.SetCondition(ctx, "node-0", corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	lost := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"DiskPressure","status":"Unknown"}]}}`, ready)
	_, err = nodes.Patch(ctx, "node-0", types.StrategicMergePatchType, lost, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	awaitNode(t, l, "node-0", func(n *corev1.Node) bool {
		return findCondition(n, corev1.NodeReady).Status == corev1.ConditionTrue && findCondition(n, corev1.NodeDiskPressure).Status == corev1.ConditionTrue &&
			n.Status.NodeInfo.BootID == before.Status.NodeInfo.BootID
	})
	require.NoError(t, l.Heal(ctx, "node-0", ""))
}

// The lab itself renews the leases of its nodes. KWOK only runs their pods.
func TestNodesWithoutPodsNeedNoKWOK(t *testing.T) {
	ctx := t.Context()
	l := lab.New(t, lab.Options{Components: lab.ControlPlane, NodeControllers: true, NoPods: true, Nodes: 2, NodeGrace: grace, Out: t.Output()})
	require.Nil(t, l.Process("kwok"))
	back := func(bootID string) func(*corev1.Node) bool {
		return func(n *corev1.Node) bool {
			return ready(n) == corev1.ConditionTrue && n.Status.NodeInfo.BootID == bootID
		}
	}
	lost := func(n *corev1.Node) bool { return ready(n) == corev1.ConditionUnknown }

	l.Break("node-1")
	awaitNode(t, l, "node-1", lost)
	require.NoError(t, l.Heal(ctx, "node-1", "second"))
	awaitNode(t, l, "node-1", back("second"))

	l.Off("node-1")
	awaitNode(t, l, "node-1", lost)
	require.NoError(t, l.On(ctx, "node-1", "third", true))
	awaitNode(t, l, "node-1", back("third"))

	awaitRenewal(t, l, "node-1")
	requireComesBackAsItWas(t, l, corev1.ConditionUnknown)
	requireKept(t, l)
}

// A machine is replaced by one with the same name. The lab must renew the new node's lease,
// although it has renewed the old one's.
func TestANodeIsReplacedUnderItsName(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	nodes := l.Client().CoreV1().Nodes()
	require.NoError(t, l.AddNode(ctx, lab.NodeSpec{Name: "replaced", Zone: "z", Pool: "p", ControlPlane: true}))
	awaitRenewal(t, l, "replaced")
	old, err := nodes.Get(ctx, "replaced", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "z", old.Labels[corev1.LabelTopologyZone])

	l.Break("replaced")
	require.NoError(t, nodes.Delete(ctx, "replaced", metav1.DeleteOptions{}))
	require.NoError(t, l.AddNode(ctx, lab.NodeSpec{Name: "replaced"}))
	t.Cleanup(func() { _ = nodes.Delete(context.WithoutCancel(ctx), "replaced", metav1.DeleteOptions{}) })
	fresh, err := nodes.Get(ctx, "replaced", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEqual(t, old.Spec.ProviderID, fresh.Spec.ProviderID)
	require.NotEqual(t, old.Status.NodeInfo.BootID, fresh.Status.NodeInfo.BootID)
	requireKept(t, l)
	lease, err := l.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "replaced", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, fresh.UID, lease.OwnerReferences[0].UID)
}

func TestPodsOfALostNodeStayTerminatingUntilItReturns(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	pods := l.Client().CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{NodeName: "node-2", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	require.Eventually(t, func() bool { // a controller must first create the namespace's service account
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err == nil
	}, lab.Patience, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		p, err := pods.Get(ctx, "p", metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning
	}, lab.Patience, 20*time.Millisecond)

	l.Break("node-2")
	require.NoError(t, pods.Delete(ctx, "p", metav1.DeleteOptions{}))
	require.Never(t, func() bool {
		_, err := pods.Get(ctx, "p", metav1.GetOptions{})
		return err != nil
	}, 2*time.Second, 100*time.Millisecond)
	require.NoError(t, l.Heal(ctx, "node-2", "second"))
	require.Eventually(t, func() bool {
		_, err := pods.Get(ctx, "p", metav1.GetOptions{})
		return err != nil
	}, lab.Patience, 50*time.Millisecond)
}

func TestAlertmanagersAreStoppedAndStartedAndTheWebhookMoves(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	require.Len(t, l.AlertmanagerURLs(), 2)
	l.StopAlertmanager(1)
	_, err := get(t, l.AlertmanagerURLs()[1]+"/-/ready")
	require.Error(t, err)
	require.NoError(t, l.SetWebhook(ctx, lab.WebhookTarget{URL: "http://127.0.0.1:1/moved"}))
	body, err := get(t, l.AlertmanagerURLs()[0]+"/api/v2/status")
	require.NoError(t, err)
	require.Contains(t, body, "send_resolved: true")
	require.NoError(t, l.StartAlertmanager(ctx, 1))
	require.Eventually(t, func() bool {
		body, err := get(t, l.AlertmanagerURLs()[1]+"/api/v2/alerts?filter=alertname%3DWatchdog")
		return err == nil && len(body) > 5
	}, lab.Patience, 50*time.Millisecond)
}
