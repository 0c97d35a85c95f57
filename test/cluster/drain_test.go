package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

// fillDisk gives the node the condition DiskPressure until its next boot.
func fillDisk(ctx context.Context, t *testing.T, h *hosts.Host) {
	t.Helper()
	_, err := h.Run(ctx, "fallocate", "-l", cluster.Fill, cluster.TemporaryDir+"/full")
	require.NoError(t, err)
}

// cause is how a test made Drydock drain a node.
type cause struct {
	// before is the ID of the node's last repair before this one. steps are those of the whole repair.
	before, steps string
	// exhausted means that nothing follows the drain. A drain alone cures nothing, so the repair ends
	// as Exhausted, and a person resets the node.
	exhausted bool
}

// causeDrain makes Drydock drain the node. On the lab's cluster the disk is almost full until the
// next boot. A person's own cluster gets a request.
func causeDrain(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) cause {
	t.Helper()
	before := lastRepair(node(t, c, name))
	if c.Hosts != nil {
		fillDisk(ctx, t, c.Hosts.Host(name))
		return cause{before: before, steps: "drain:1, reboot:1"}
	}
	_, err := c.Run(ctx, "kubectl-drydock", "repair", name, "--policy", cluster.DrainPolicy)
	require.NoError(t, err)
	return cause{before: before, steps: "drain:1", exhausted: true}
}

// awaitDrained waits for the end of the repair, and leaves the node uncordoned.
func awaitDrained(ctx context.Context, t *testing.T, c *cluster.Cluster, name string, by cause) remediations.Entry {
	t.Helper()
	repair := awaitRepair(ctx, t, c, name, by.before)
	require.Equal(t, by.steps, steps(repair))
	if by.exhausted {
		require.Equal(t, remediations.OutcomeExhausted, repair.Outcome)
		_, err := c.Run(ctx, "kubectl-drydock", "reset", name)
		require.NoError(t, err)
	} else {
		require.Equal(t, remediations.OutcomeRecovered, repair.Outcome)
	}
	await(ctx, t, c, name, "the end of its cordon", func(n *corev1.Node) bool {
		// A controller removes the taint of a cordon later. Until then, the scheduler places no pod
		// here, and the next test needs one.
		tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		return !n.Spec.Unschedulable && !tainted
	})
	return repair
}

// draining reports whether a repair of the node is in flight and has cordoned it.
func draining(n *corev1.Node) bool { return n.Spec.Unschedulable && remediations.InFlight(n) != nil }

func record(n *corev1.Node) *remediations.Record {
	r, err := remediations.DecodeRecord(n.Annotations[remediations.NodeRepairKey])
	if err != nil {
		return nil
	}
	return r
}

func pod(c *cluster.Cluster, name, node string, spec corev1.PodSpec) *corev1.Pod {
	spec.NodeName = node
	spec.Containers = append(spec.Containers, container(c))
	spec.PriorityClassName = "system-cluster-critical" // the kubelet must not evict it for the full disk
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: spec}
}

// TestADrainThatNoBudgetAllowsRebootsNothing: the shipped plan stops, and a person must act.
func TestADrainThatNoBudgetAllowsRebootsNothing(t *testing.T) {
	c, ctx := start(t)
	name := another(ctx, t, c)
	host := c.Hosts.Host(name)
	runApp(ctx, t, c, name)
	boot := node(t, c, name).Status.NodeInfo.BootID
	before := lastRepair(node(t, c, name))
	fillDisk(ctx, t, host)
	n := await(ctx, t, c, name, "the end of its plan", func(n *corev1.Node) bool {
		r := record(n)
		return r != nil && r.Phase == remediations.PhaseExhausted
	})
	require.Equal(t, boot, n.Status.NodeInfo.BootID)
	require.True(t, n.Spec.Unschedulable, "it stays cordoned")
	require.Len(t, appPods(ctx, t, c, name), 1, "the budget kept it there")

	_, err := host.Run(ctx, "rm", cluster.TemporaryDir+"/full")
	require.NoError(t, err)
	await(ctx, t, c, name, "no DiskPressure", func(n *corev1.Node) bool { return !has(n, corev1.NodeDiskPressure) })
	_, err = c.Run(ctx, "kubectl-drydock", "reset", name)
	require.NoError(t, err)
	n = await(ctx, t, c, name, "no record", func(n *corev1.Node) bool {
		return n.Annotations[remediations.NodeRepairKey] == "" && !n.Spec.Unschedulable && lastRepair(n) != before
	})
	require.Equal(t, remediations.OutcomeExhausted, ended(n)[0].Outcome)
	require.Equal(t, boot, n.Status.NodeInfo.BootID)
}

func appPods(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) []corev1.Pod {
	t.Helper()
	pods, err := c.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=app", FieldSelector: "spec.nodeName=" + name})
	require.NoError(t, err)
	return pods.Items
}

// TestADrainLeavesWhatBelongsToTheNode: pods of DaemonSets and static pods run until the reboot. A
// pod with an emptyDir is evicted. A pod that ends slowly gets its whole grace period.
func TestADrainLeavesWhatBelongsToTheNode(t *testing.T) {
	c, ctx := start(t)
	name := another(ctx, t, c)
	host := c.Hosts.Host(name)
	runAgent(ctx, t, c, "resident")

	const manifest = "/etc/kubernetes/manifests/static.yaml"
	static, err := yaml.Marshal(pod(c, "static", "", corev1.PodSpec{}))
	require.NoError(t, err)
	require.NoError(t, host.Write(manifest, 0o600, static))
	t.Cleanup(func() {
		_, err := host.Run(context.WithoutCancel(ctx), "rm", manifest)
		require.NoError(t, err)
	})
	const grace = 20 // seconds
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: makeOwner(ctx, t, c), Controller: ptr.To(true)}}
	scratch := pod(c, "scratch", name, corev1.PodSpec{Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}})
	slow := pod(c, "slow", name, corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](grace + 40)})
	slow.Spec.Containers[0].Args = []string{"", fmt.Sprintf("%ds", grace)}
	for _, p := range []*corev1.Pod{scratch, slow} {
		p.OwnerReferences = owner
		_, err := c.Client().CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	get := func(pod string) (*corev1.Pod, error) {
		return c.Client().CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
	}
	running := func(pod string) bool { p, err := get(pod); return err == nil && p.Status.Phase == corev1.PodRunning }
	require.Eventually(t, func() bool {
		return running("scratch") && running("slow") && running("static-"+name) && agentPod(ctx, c, "resident", name, corev1.ConditionTrue) != nil
	}, lab.Patience, tick)
	resident := agentPod(ctx, c, "resident", name, corev1.ConditionTrue).UID
	mirror, err := get("static-" + name)
	require.NoError(t, err)

	n := node(t, c, name)
	boot, before := n.Status.NodeInfo.BootID, lastRepair(n)
	fillDisk(ctx, t, host)
	var asked time.Time
	boots := map[string]bool{}
	require.Eventually(t, func() bool {
		n, err := c.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		p, err := get("slow")
		if err == nil {
			boots[n.Status.NodeInfo.BootID] = true
			if p.DeletionTimestamp != nil && asked.IsZero() {
				asked = time.Now()
			}
		}
		return apierrors.IsNotFound(err)
	}, lab.Patience, tick)
	require.Equal(t, map[string]bool{boot: true}, boots, "no reboot before it has ended")
	require.Greater(t, time.Since(asked).Seconds(), float64(grace-2), "it ended by itself")
	_, err = get("scratch")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	now, err := get("static-" + name)
	require.NoError(t, err)
	require.Equal(t, mirror.UID, now.UID)

	repair := awaitRepair(ctx, t, c, name, before)
	require.Equal(t, "drain:1, reboot:1", steps(repair))
	require.Eventually(t, func() bool { return agentPod(ctx, c, "resident", name, corev1.ConditionTrue) != nil }, lab.Patience, tick)
	require.Equal(t, resident, agentPod(ctx, c, "resident", name, corev1.ConditionTrue).UID, "the reboot did not remove it")
}

// makeOwner creates an object that owns pods. A drain does not evict a pod without a controller,
// because it would not be created again.
func makeOwner(ctx context.Context, t *testing.T, c *cluster.Cluster) types.UID {
	t.Helper()
	maps := c.Client().CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, maps.Delete(context.WithoutCancel(ctx), "owner", metav1.DeleteOptions{}))
	})
	return made.UID
}
