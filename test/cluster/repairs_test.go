package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

const tick = 200 * time.Millisecond

func node(t *testing.T, c *cluster.Cluster, name string) *corev1.Node {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

// await waits until the Node is as wanted. It repeats a request that fails while a host reboots.
func await(ctx context.Context, t *testing.T, c *cluster.Cluster, name, what string, is func(*corev1.Node) bool) *corev1.Node {
	t.Helper()
	for {
		n, err := c.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && is(n) {
			return n
		}
		select {
		case <-ctx.Done():
			require.FailNow(t, "it did not happen", "waiting for node %s: %s (%v)", name, what, err)
		case <-time.After(tick):
		}
	}
}

// ended returns the Node's history, the newest repair first. It has ten entries at most.
func ended(n *corev1.Node) []remediations.Entry {
	return remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])
}

// lastRepair returns the ID of the newest repair in the Node's history, or "" if there is none.
func lastRepair(n *corev1.Node) string {
	for _, e := range ended(n) {
		return e.ID
	}
	return ""
}

// awaitRepair waits for the end of one more repair after the one with the ID before, and returns
// it. Then no repair is in flight.
func awaitRepair(ctx context.Context, t *testing.T, c *cluster.Cluster, name, before string) remediations.Entry {
	t.Helper()
	n := await(ctx, t, c, name, "the end of its repair", func(n *corev1.Node) bool {
		return lastRepair(n) != before && remediations.InFlight(n) == nil && remediations.Ready(n)
	})
	all := append(ended(n), remediations.Entry{}) // before the first repair there is none
	require.Equal(t, before, all[1].ID, "one fault, one repair")
	t.Logf("policy %s: %s ended as %s after %.0f s", all[0].Policy, steps(all[0]), all[0].Outcome, all[0].Ended.Sub(all[0].Began).Seconds())
	return all[0]
}

func steps(e remediations.Entry) string { return e.Steps.String() }

// leader returns the pod that leads. It returns nil if the pod that the Lease names no longer
// exists.
func leader(ctx context.Context, c *cluster.Cluster) *corev1.Pod {
	lease, err := c.Client().CoordinationV1().Leases(cluster.Namespace).Get(ctx, "drydock", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if name == "" {
		return nil
	}
	pod, err := c.Client().CoreV1().Pods(cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return pod
}

// leaderNode waits for a leader, and returns the leader's node.
func leaderNode(ctx context.Context, t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	var pod *corev1.Pod
	require.Eventually(t, func() bool {
		pod = leader(ctx, c)
		return pod != nil && pod.DeletionTimestamp == nil
	}, lab.Patience, tick, "a pod leads")
	return pod.Spec.NodeName
}

// another returns a node whose fault does not affect the leader.
func another(ctx context.Context, t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	leader := leaderNode(ctx, t, c)
	for _, name := range c.Nodes() {
		if name != leader {
			return name
		}
	}
	return leader // the only node of a person's own cluster that a test may disturb
}

// breakKubelet ends the host's kubelet. It does not start again before the host's next boot.
func breakKubelet(ctx context.Context, t *testing.T, h *hosts.Host) {
	t.Helper()
	_, err := h.Run(ctx, "sh", "-c", `mkdir -p /run/systemd/system/kubelet.service.d &&
		printf '[Service]\nExecStartPre=/bin/false\n' >/run/systemd/system/kubelet.service.d/broken.conf &&
		systemctl daemon-reload && systemctl kill --signal=KILL kubelet.service`)
	require.NoError(t, err)
}

// TestTheReleaseIsInstalled as a person would install it, and `helm test` sees an alert arrive.
func TestTheReleaseIsInstalled(t *testing.T) {
	c, ctx := startAny(t)
	out, err := c.Run(ctx, "helm", "test", cluster.Namespace, "--namespace="+cluster.Namespace, "--timeout=5m")
	require.NoError(t, err)
	require.Contains(t, out, "Succeeded")
}

// TestAFrozenKubeletIsRestarted. A kubelet that answers again before the alert fires is not
// restarted.
func TestAFrozenKubeletIsRestarted(t *testing.T) {
	c, ctx := start(t)
	name := another(ctx, t, c)
	host := c.Hosts.Host(name)
	boot, before := node(t, c, name).Status.NodeInfo.BootID, lastRepair(node(t, c, name))
	attempts, err := host.Attempts(ctx, hosts.KubeletUnit)
	require.NoError(t, err)

	freezeBriefly(ctx, t, c, host)
	systemctl(ctx, t, host, "kill", "--signal=STOP", hosts.KubeletUnit)
	repair := awaitRepair(ctx, t, c, name, before) // the only repair: the first fault caused none
	require.Equal(t, remediations.OutcomeRecovered, repair.Outcome)
	require.Equal(t, "restart-kubelet:1", steps(repair))
	now, err := host.Attempts(ctx, hosts.KubeletUnit)
	require.NoError(t, err)
	require.Len(t, now, len(attempts)+1, "restarts by Drydock in the journal of the host")
	require.Equal(t, boot, node(t, c, name).Status.NodeInfo.BootID)
}

// TestAKubeletThatStaysDeadIsCuredByAReboot: the boot ID in the Node's status proves the reboot.
func TestAKubeletThatStaysDeadIsCuredByAReboot(t *testing.T) {
	c, ctx := start(t)
	rebooted(ctx, t, c, another(ctx, t, c))
}

// rebooted breaks the node's kubelet until the next boot, and waits for the repair.
func rebooted(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	host := c.Hosts.Host(name)
	boot, before := node(t, c, name).Status.NodeInfo.BootID, lastRepair(node(t, c, name))
	id, err := host.BootID(ctx)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(boot, "-", ""), strings.ReplaceAll(id, "-", ""), "the kubelet reports the host's own")
	breakKubelet(ctx, t, host)
	repair := awaitRepair(ctx, t, c, name, before)
	require.Equal(t, remediations.OutcomeRecovered, repair.Outcome)
	require.Equal(t, "restart-kubelet:1, reboot:1", steps(repair))
	require.NotEqual(t, boot, node(t, c, name).Status.NodeInfo.BootID)
	reboots, err := host.RebootAttempts(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, reboots, "the journal of the host has the reboot by Drydock")
}

// TestTheLeadersOwnNodeIsRebooted: the other replica becomes the leader and proves the reboot.
func TestTheLeadersOwnNodeIsRebooted(t *testing.T) {
	c, ctx := start(t)
	require.NoError(t, c.AwaitDrydock(ctx, 2))
	name := leaderNode(ctx, t, c)
	rebooted(ctx, t, c, name)
	require.NoError(t, c.AwaitDrydock(ctx, 2))
}

// TestADrainWaitsForABudgetThatYieldsLate: no pod is evicted, and nothing reboots, before the
// budget allows the eviction.
func TestADrainWaitsForABudgetThatYieldsLate(t *testing.T) {
	c, ctx := startAny(t)
	name := another(ctx, t, c)
	budget := runApp(ctx, t, c, name)
	boot := node(t, c, name).Status.NodeInfo.BootID
	by := causeDrain(ctx, t, c, name)
	await(ctx, t, c, name, "the cordon of its drain", draining)
	pods := appPods(ctx, t, c, name)
	require.Len(t, pods, 1, "the budget keeps it there")
	require.Nil(t, pods[0].DeletionTimestamp)
	require.Equal(t, boot, node(t, c, name).Status.NodeInfo.BootID)

	yield(ctx, t, c, budget)
	awaitDrained(ctx, t, c, name, by)
	require.Equal(t, !by.exhausted, boot != node(t, c, name).Status.NodeInfo.BootID, "only a step after the drain reboots")
}

// container only runs.
func container(c *cluster.Cluster) corev1.Container {
	return corev1.Container{Name: "main", Image: c.PauseImage(), ImagePullPolicy: corev1.PullIfNotPresent}
}

// runApp runs one pod on the node, with a PodDisruptionBudget that allows no eviction.
func runApp(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) (budget string) {
	t.Helper()
	labels := map[string]string{"app": "app"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{container(c)},
					Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
						Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
						}},
					}}}},
					// The kubelet must not evict the pod for the full disk before Drydock drains
					// the node.
					PriorityClassName: "system-cluster-critical",
				},
			},
		},
	}
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	_, err := c.Client().AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Client().PolicyV1().PodDisruptionBudgets("default").Create(ctx, pdb, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = c.Client().PolicyV1().PodDisruptionBudgets("default").Delete(ctx, "app", metav1.DeleteOptions{})
		_ = c.Client().AppsV1().Deployments("default").Delete(ctx, "app", metav1.DeleteOptions{})
		require.Eventually(t, func() bool {
			pods, err := c.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=app"})
			return err == nil && len(pods.Items) == 0
		}, lab.Patience, tick, "the next test lists the pods with this label")
	})
	require.Eventually(t, func() bool {
		d, err := c.Client().AppsV1().Deployments("default").Get(ctx, "app", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == 1
	}, lab.Patience, tick)
	pods, err := c.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=app"})
	require.NoError(t, err)
	require.Equal(t, name, pods.Items[0].Spec.NodeName)
	return pdb.Name
}
