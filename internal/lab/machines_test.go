package lab_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
)

// TestARecycledMachineComesBackAsAnother: the Node is deleted with its machine. The new machine's
// Node is Ready and has its own UID, providerID and boot ID. Otherwise it is like the old one,
// without what others wrote on that.
func TestARecycledMachineComesBackAsAnother(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	for name, keep := range map[string]bool{"kept": true, "renamed": false} {
		t.Run(name, func(t *testing.T) {
			nodes := l.Client().CoreV1().Nodes()
			require.NoError(t, l.AddNode(ctx, lab.NodeSpec{
				Name: "recycled-" + name, ProviderID: "civo://old-" + name, Zone: "z", Pool: "p", Labels: map[string]string{"nvidia.com/gpu.count": "1"},
				Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}},
			}))
			t.Cleanup(func() {
				_ = nodes.DeleteCollection(context.WithoutCancel(ctx), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "kubernetes.civo.com/civo-node-pool=p"})
			})
			patch := []byte(`{"metadata":{"labels":{"drydock.dev/phase":"Verifying"}},"spec":{"unschedulable":true}}`)
			old, err := nodes.Patch(ctx, "recycled-"+name, types.MergePatchType, patch, metav1.PatchOptions{})
			require.NoError(t, err)
			l.Break(old.Name)

			civo, err := l.StartCivo(ctx, lab.CivoOptions{KeepHostname: keep, BuildTime: 200 * time.Millisecond, Logf: t.Logf})
			require.NoError(t, err)
			t.Cleanup(civo.Close)
			_, err = apiOf(t, civo).RecycleKubernetesCluster(civo.ClusterID, old.Name)
			require.NoError(t, err)

			var fresh *corev1.Node
			require.Eventually(t, func() bool {
				all, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.civo.com/civo-node-pool=p"})
				require.NoError(t, err)
				for i := range all.Items {
					if fresh = &all.Items[i]; fresh.UID != old.UID {
						return len(all.Items) == 1 && ready(fresh) == corev1.ConditionTrue
					}
				}
				return false
			}, lab.Patience, 20*time.Millisecond)
			all := civo.Instances()
			successor := all[len(all)-1]
			require.Equal(t, []string{"ACTIVE", "p", "old-" + name}, []string{successor.Status, successor.Pool, successor.Replaces})
			require.Equal(t, successor.ProviderID(), fresh.Spec.ProviderID)
			require.Equal(t, keep, fresh.Name == old.Name)
			require.NotEqual(t, old.Status.NodeInfo.BootID, fresh.Status.NodeInfo.BootID)
			require.Equal(t, []string{"z", "1", fresh.Name}, []string{fresh.Labels[corev1.LabelTopologyZone], fresh.Labels["nvidia.com/gpu.count"], fresh.Labels[corev1.LabelHostname]})
			require.Equal(t, old.Status.Allocatable, fresh.Status.Allocatable)
			require.Contains(t, fresh.Spec.Taints, old.Spec.Taints[0])
			require.NotContains(t, fresh.Labels, "drydock.dev/phase")
			require.False(t, fresh.Spec.Unschedulable)
			awaitRenewal(t, l, fresh.Name)
		})
	}
}

// TestANodeOfAnotherMachineIsLeftAlone: the provider deletes by machine, and a Node that was
// registered again under the name belongs to another machine.
func TestANodeOfAnotherMachineIsLeftAlone(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	node, err := l.Client().CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	m := l.Machines()
	require.NoError(t, m.Remove(ctx, civosim.Instance{ID: "another", Hostname: "node-0"}))
	require.NoError(t, m.Remove(ctx, civosim.Instance{ID: "another", Hostname: "nowhere"}))
	after, err := l.Client().CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, node.UID, after.UID)
	require.Nil(t, after.DeletionTimestamp)
}

// TestARebootTakesTheNodeAway: if the machine is down for longer than the grace, all conditions of
// its kubelet become Unknown. The machine comes up with another boot ID, and still has a fault that
// the reboot did not cure.
func TestARebootTakesTheNodeAway(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	kubelets := []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure}
	require.NoError(t, l.AddNode(ctx, lab.NodeSpec{Name: "rebooted", ProviderID: "civo://rebooted"}))
	t.Cleanup(func() {
		_ = l.Client().CoreV1().Nodes().Delete(context.WithoutCancel(ctx), "rebooted", metav1.DeleteOptions{})
	})
	awaitRenewal(t, l, "rebooted")
	require.NoError(t, l.SetCondition(ctx, "rebooted", corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	before, err := l.Client().CoreV1().Nodes().Get(ctx, "rebooted", metav1.GetOptions{})
	require.NoError(t, err)
	back := make(chan struct{})
	civo, err := l.StartCivo(ctx, lab.CivoOptions{Logf: t.Logf, Cures: func(civosim.Instance, civosim.Op) bool {
		<-back
		return false
	}})
	require.NoError(t, err)
	t.Cleanup(civo.Close)
	comeBack := sync.OnceFunc(func() { close(back) })
	t.Cleanup(comeBack)

	_, err = apiOf(t, civo).HardRebootInstance("rebooted")
	require.NoError(t, err)
	awaitNode(t, l, "rebooted", func(n *corev1.Node) bool {
		return n.Status.NodeInfo.BootID == before.Status.NodeInfo.BootID && !slices.ContainsFunc(kubelets, func(kind corev1.NodeConditionType) bool {
			return findCondition(n, kind).Status != corev1.ConditionUnknown
		})
	})
	comeBack()
	var after *corev1.Node
	awaitNode(t, l, "rebooted", func(n *corev1.Node) bool {
		after = n
		return ready(n) == corev1.ConditionTrue
	})
	require.NotEqual(t, before.Status.NodeInfo.BootID, after.Status.NodeInfo.BootID)
	require.Equal(t, corev1.ConditionFalse, findCondition(after, corev1.NodeMemoryPressure).Status)
	require.Equal(t, corev1.ConditionTrue, findCondition(after, corev1.NodeDiskPressure).Status)
	awaitRenewal(t, l, "rebooted")
}

// A test ends, together with its fault and its provider, while a machine is just coming up. Nothing
// of them may be left.
func TestANodeIsWellAfterATestThatEndedDuringAReboot(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	node := lab.NodeSpec{Name: "interrupted", ProviderID: "civo://interrupted"}
	require.NoError(t, l.AddNode(ctx, node))
	t.Cleanup(func() {
		_ = l.Client().CoreV1().Nodes().Delete(context.WithoutCancel(ctx), node.Name, metav1.DeleteOptions{})
	})
	for range 30 {
		require.NoError(t, l.SetCondition(ctx, node.Name, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
		starting := make(chan struct{})
		civo, err := l.StartCivo(ctx, lab.CivoOptions{Cures: func(civosim.Instance, civosim.Op) bool {
			close(starting)
			return false
		}})
		require.NoError(t, err)
		_, err = apiOf(t, civo).HardRebootInstance(node.Name)
		require.NoError(t, err)
		<-starting
		time.Sleep(rand.N(20 * time.Millisecond)) // a random moment while the machine comes up: the order of events must vary
		require.NoError(t, l.Heal(ctx, node.Name, ""))
		civo.Close()
		awaitNode(t, l, node.Name, func(n *corev1.Node) bool { return ready(n) == corev1.ConditionTrue })
	}
}

func apiOf(t *testing.T, civo *lab.Civo) *civogo.Client {
	t.Helper()
	key, err := os.ReadFile(civo.KeyFile)
	require.NoError(t, err)
	api, err := civogo.NewClientWithURL(strings.TrimSpace(string(key)), civo.URL(), civo.Region)
	require.NoError(t, err)
	return api
}
