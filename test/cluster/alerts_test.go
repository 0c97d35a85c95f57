package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

// faults are the faults of a real node that a shipped alert detects. NodeNotReady because of a
// kubelet, and NodeDiskPressure, have tests of their own. No test causes NodeSubsystemNotReady (the
// agents of clouds), CiliumAgentNotReady (the cluster uses another network), and the alerts about
// GPUs and the mesh.
var faults = []struct {
	alert, policy, what string
	// begin causes the fault. passing causes the same fault, or a similar one, that needs no
	// repair, and returns when it has ended by itself.
	begin, passing func(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host)
	steps          string // the steps of the repair
}{
	{"NodeNotReady", "node-not-ready", "the container runtime stops", stopRuntime, stopRuntimeBriefly, "restart-kubelet:1"},
	{"NodeHeartbeatLost", "node-heartbeat-lost", "a kubelet hangs while no controller looks after nodes", loseHeartbeat, freezeBriefly, "restart-kubelet:1"},
	{"KubeProxyNotReady", "kube-proxy-not-ready", "the pod of kube-proxy hangs", hang("kube-proxy"), hangBriefly("kube-proxy"), "restart-kube-proxy:1"},
	{"CNIPodNotReady", "cni-not-ready", "the pod of the network hangs", hang("kindnet"), hangBriefly("kindnet"), "restart-cni:1"},
	{"NodeKernelDeadlock", "node-kernel-deadlock", "the kernel's log has a task that hangs for ever",
		logged("KernelDeadlock", "task docker:20744 blocked for more than 120 seconds."), passingTask, "reboot:1"},
	{"NodeFilesystemReadOnly", "node-filesystem-read-only", "the kernel's log has a file system that became read-only",
		logged("ReadonlyFilesystem", "EXT4-fs (vda1): Remounting filesystem read-only"), passingTask, "drain:1, reboot:1"},
	{"NodeProblemDetected", "node-problem-detected", "the kernel's log has a file system that was shut down",
		logged("XfsShutdown", "XFS (vda1): xfs_do_force_shutdown. Shutting down filesystem."), passingTask, "drain:1, reboot:1"},
}

// TestEachFaultOfANodeIsRepairedOnce uses the shipped rules and policies. A fault that ends by
// itself in time is not repaired.
func TestEachFaultOfANodeIsRepairedOnce(t *testing.T) {
	for _, f := range faults {
		t.Run(f.alert, func(t *testing.T) {
			c, ctx := start(t)
			name := another(ctx, t, c)
			before := lastRepair(node(t, c, name))
			f.passing(ctx, t, c, c.Hosts.Host(name))
			began := time.Now()
			f.begin(ctx, t, c, c.Hosts.Host(name))
			repair := awaitRepair(ctx, t, c, name, before)
			t.Logf("%s: the repair began %.0f s after the fault", f.what, repair.Began.Sub(began).Seconds())
			require.Equal(t, remediations.OutcomeRecovered, repair.Outcome, f.what)
			require.Equal(t, f.policy, repair.Policy)
			require.Equal(t, f.steps, steps(repair))
			require.False(t, node(t, c, name).Spec.Unschedulable)
		})
	}
}

func systemctl(ctx context.Context, t *testing.T, h *hosts.Host, args ...string) {
	t.Helper()
	_, err := h.Run(ctx, append([]string{"systemctl"}, args...)...)
	require.NoError(t, err)
}

func notReady(n *corev1.Node) bool { return !remediations.Ready(n) }

func stopRuntime(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
	t.Helper()
	systemctl(ctx, t, h, "stop", hosts.ContainerdUnit)
	await(ctx, t, c, h.Name, "not Ready", notReady)
}

func stopRuntimeBriefly(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
	t.Helper()
	stopRuntime(ctx, t, c, h)
	systemctl(ctx, t, h, "start", hosts.ContainerdUnit)
	await(ctx, t, c, h.Name, "Ready again", remediations.Ready)
}

// loseHeartbeat freezes the kubelet, and the controllers that would set the node's conditions to
// Unknown. The controllers run again when the test ends.
func loseHeartbeat(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
	t.Helper()
	controllers := c.Process("kube-controller-manager")
	require.NoError(t, controllers.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { require.NoError(t, controllers.Signal(syscall.SIGCONT)) })
	systemctl(ctx, t, h, "kill", "--signal=STOP", hosts.KubeletUnit)
}

// freezeBriefly makes the kubelet hang, and continues it before an alert fires.
func freezeBriefly(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
	t.Helper()
	systemctl(ctx, t, h, "kill", "--signal=STOP", hosts.KubeletUnit)
	await(ctx, t, c, h.Name, "not Ready", notReady)
	systemctl(ctx, t, h, "kill", "--signal=CONT", hosts.KubeletUnit)
	await(ctx, t, c, h.Name, "Ready again", remediations.Ready)
}

const agentPort = 8080

// agentPod returns the DaemonSet's pod on the node, if it is as wanted.
func agentPod(ctx context.Context, c *cluster.Cluster, daemonSet, name string, ready corev1.ConditionStatus) *corev1.Pod {
	pods, err := c.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: "app=" + daemonSet, FieldSelector: "spec.nodeName=" + name,
	})
	if err != nil || len(pods.Items) != 1 {
		return nil
	}
	for _, condition := range pods.Items[0].Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == ready {
			return &pods.Items[0]
		}
	}
	return nil
}

// runAgent runs a DaemonSet with this name in place of the real one until the test ends.
func runAgent(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	daemonSets := c.Client().AppsV1().DaemonSets(metav1.NamespaceSystem)
	if _, err := daemonSets.Get(ctx, name, metav1.GetOptions{}); err == nil {
		return
	}
	labels := map[string]string{"app": name}
	agent := container(c)
	agent.Args = []string{fmt.Sprintf(":%d", agentPort)}
	agent.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(agentPort)}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
	_, err := daemonSets.Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:  []corev1.Container{agent},
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					// Like the real DaemonSets: the kubelet does not evict it for a full disk.
					PriorityClassName: "system-node-critical",
				},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		require.NoError(t, daemonSets.Delete(ctx, name, metav1.DeleteOptions{}))
		require.Eventually(t, func() bool {
			pods, err := c.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
			return err == nil && len(pods.Items) == 0
		}, lab.Patience, tick, "the pods of %s are gone", name)
	})
}

// hang returns a fault: the DaemonSet's pod on the node accepts no more connections.
func hang(daemonSet string) func(context.Context, *testing.T, *cluster.Cluster, *hosts.Host) {
	return func(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
		t.Helper()
		runAgent(ctx, t, c, daemonSet)
		for _, other := range c.Hosts.All() {
			require.Eventually(t, func() bool { return agentPod(ctx, c, daemonSet, other.Name, corev1.ConditionTrue) != nil }, lab.Patience, tick)
		}
		signalAgent(ctx, t, h, "USR1")
		require.Eventually(t, func() bool { return agentPod(ctx, c, daemonSet, h.Name, corev1.ConditionFalse) != nil }, lab.Patience, tick)
	}
}

func hangBriefly(daemonSet string) func(context.Context, *testing.T, *cluster.Cluster, *hosts.Host) {
	return func(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
		t.Helper()
		hang(daemonSet)(ctx, t, c, h)
		signalAgent(ctx, t, h, "USR2")
		require.Eventually(t, func() bool { return agentPod(ctx, c, daemonSet, h.Name, corev1.ConditionTrue) != nil }, lab.Patience, tick)
	}
}

func signalAgent(ctx context.Context, t *testing.T, h *hosts.Host, signal string) {
	t.Helper()
	_, err := h.Run(ctx, "pkill", "--signal="+signal, "--full", fmt.Sprintf("^/pause :%d$", agentPort))
	require.NoError(t, err)
}

func log(ctx context.Context, t *testing.T, h *hosts.Host, message string) {
	t.Helper()
	_, err := h.Run(ctx, "sh", "-c", `printf '%s\n' "$1" >>"$2"`, "sh", cluster.KernelLine(message), cluster.KernelLog)
	require.NoError(t, err)
}

// logged returns a fault: node-problem-detector reads the message in the log, and sets the
// condition until the host boots.
func logged(condition corev1.NodeConditionType, message string) func(context.Context, *testing.T, *cluster.Cluster, *hosts.Host) {
	return func(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
		t.Helper()
		log(ctx, t, h, message)
		await(ctx, t, c, h.Name, string(condition), func(n *corev1.Node) bool { return has(n, condition) })
	}
}

// has reports whether the Node has the condition.
func has(n *corev1.Node, condition corev1.NodeConditionType) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// passingTask makes node-problem-detector read about a task that was slow. It sends an Event about
// that, and sets no condition.
func passingTask(ctx context.Context, t *testing.T, c *cluster.Cluster, h *hosts.Host) {
	t.Helper()
	log(ctx, t, h, "task bash:20744 blocked for more than 120 seconds.")
	require.Eventually(t, func() bool {
		events, err := c.Client().CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=TaskHung"})
		if err != nil {
			return false
		}
		for _, e := range events.Items {
			if strings.Contains(e.InvolvedObject.Name, h.Name) {
				return true
			}
		}
		return false
	}, lab.Patience, tick)
}
