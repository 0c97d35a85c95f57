package rules_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/rules"
)

// quick returns the shipped rules with time ranges of seconds in place of minutes, and without a
// minimum age of nodes.
func quick(t *testing.T) []string {
	t.Helper()
	seconds := strings.NewReplacer(
		"[8m]", "[15s]", "[5m]", "[15s]", "[2m]", "[8s]", "offset 8m", "offset 15s", "offset 2m", "offset 8s", "offset 10m", "offset 0s", "< 600", "< 0",
	)
	names, err := rules.Names()
	require.NoError(t, err)
	dir := t.TempDir()
	var out []string
	for _, name := range names {
		text, err := rules.Read(name)
		require.NoError(t, err)
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(seconds.Replace(string(text))), 0o600))
		out = append(out, file)
	}
	return out
}

// firing returns the alerts that fire now, as "alert node remediation".
func firing(l *lab.Lab) []string {
	resp, err := http.Get(l.PrometheusURL() + "/api/v1/alerts")
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" && a.Labels["remediation"] != "" {
			out = append(out, a.Labels["alertname"]+" "+a.Labels["node"]+" "+strings.TrimSpace(a.Labels["remediation"]+" "+a.Labels["source"]))
		}
	}
	slices.Sort(out)
	return out
}

// evaluated waits until Prometheus has evaluated every group of rules that many more times. On a
// busy machine, waiting for seconds does not show that.
func evaluated(t *testing.T, l *lab.Lab, times float64) {
	t.Helper()
	counts := func() map[string]float64 {
		resp, err := http.Get(l.PrometheusURL() + "/metrics")
		if err != nil {
			return nil
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil
		}
		out := map[string]float64{}
		for _, m := range iterations.FindAllStringSubmatch(string(body), -1) {
			out[m[1]], _ = strconv.ParseFloat(m[2], 64)
		}
		return out
	}
	var before map[string]float64
	require.Eventually(t, func() bool {
		now := counts()
		if len(before) == 0 {
			before = now
			return false
		}
		for group, n := range before {
			if now[group] < n+times {
				return false
			}
		}
		return true
	}, lab.Patience, time.Second, "every group is evaluated %v times", times)
}

var iterations = regexp.MustCompile(`(?m)^prometheus_rule_group_iterations_total\{rule_group="([^"]+)"\} (\S+)$`)

// agent makes Cilium's pod of the node run, with the given readiness. The DaemonSet's controller
// has created the pod. A lab has no scheduler, so the test binds the pod.
func agent(t *testing.T, l *lab.Lab, node string, ready bool) {
	t.Helper()
	pods := l.Client().CoreV1().Pods("kube-system")
	var name string
	require.Eventually(t, func() bool {
		all, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=cilium"})
		if err != nil {
			return false
		}
		for _, p := range all.Items {
			term := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
			if term.MatchFields[0].Values[0] == node {
				name = p.Name
			}
		}
		return name != ""
	}, 2*time.Minute, 200*time.Millisecond, "the pod for %s", node)
	require.NoError(t, pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{}))
	require.Eventually(t, func() bool {
		p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning
	}, 2*time.Minute, 200*time.Millisecond, "it runs")
	if ready {
		return
	}
	patch := `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	_, err := pods.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

const selfTestFires, sourceSeenFires = "DrydockSelfTest  drydock-self-test", "DrydockSelfTest  drydock-self-test seen"

// TestRulesFireOnWhatKubeStateMetricsReallySays: promtool's series are written by hand. The series
// here come from a real kube-state-metrics, about real objects.
func TestRulesFireOnWhatKubeStateMetricsReallySays(t *testing.T) {
	drydock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "drydock_leader 1")
		for _, node := range []string{"gpu-lost", "gpu-none", "gpu-well", "gpu-shared"} {
			fmt.Fprintf(w, "drydock_node_expected_gpus{node=%q} 4\n", node)
		}
	}))
	defer drydock.Close()
	gpus := func(name, count string) lab.NodeSpec {
		return lab.NodeSpec{Name: name, Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)}}
	}
	taint := []corev1.Taint{{Key: "node.cilium.io/agent-not-ready", Effect: corev1.TaintEffectNoSchedule}}
	l := lab.New(t, lab.Options{
		Nodes: 2, RuleFiles: quick(t), RuleFor: ptr.To(time.Second), Out: t.Output(),
		Scrape: map[string][]string{"drydock": {drydock.Listener.Addr().String()}},
		NodeSpecs: []lab.NodeSpec{
			gpus("gpu-lost", "3"), {Name: "gpu-none"}, gpus("gpu-well", "4"), gpus("gpu-shared", "16"), gpus("gpu-no-label", "0"),
			{Name: "disk"}, {Name: "agent-sick"}, {Name: "agent-tainted", Taints: taint}, {Name: "agent-well", Taints: taint}, {Name: "silent"},
			{Name: "deadlocked"}, {Name: "read-only"},
		},
	})
	require.NoError(t, l.SetCondition(t.Context(), "disk", corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	// The conditions of node-problem-detector. Some nodes do not have them, and one has Unknown.
	require.NoError(t, l.SetCondition(t.Context(), "deadlocked", "KernelDeadlock", corev1.ConditionTrue, "TaskHung"))
	require.NoError(t, l.SetCondition(t.Context(), "deadlocked", "ReadonlyFilesystem", corev1.ConditionFalse, "FilesystemIsNotReadOnly"))
	require.NoError(t, l.SetCondition(t.Context(), "read-only", "ReadonlyFilesystem", corev1.ConditionTrue, "FilesystemIsReadOnly"))
	require.NoError(t, l.SetCondition(t.Context(), "read-only", "KernelDeadlock", corev1.ConditionUnknown, "NoData"))
	require.NoError(t, l.SetCondition(t.Context(), "deadlocked", "FrequentKubeletRestart", corev1.ConditionTrue, "FrequentKubeletRestart"))
	require.NoError(t, l.SetCondition(t.Context(), "deadlocked", "XfsShutdown", corev1.ConditionUnknown, "NoData"))
	// The conditions of the EKS node monitoring agent and of NVSentinel.
	require.NoError(t, l.SetCondition(t.Context(), "disk", "KernelReady", corev1.ConditionFalse, "ForkFailedOutOfPIDs"))
	require.NoError(t, l.SetCondition(t.Context(), "disk", "NetworkingReady", corev1.ConditionTrue, "NetworkingIsReady"))
	require.NoError(t, l.SetCondition(t.Context(), "gpu-no-label", "SysLogsXIDError", corev1.ConditionTrue, "SysLogsXIDErrorIsNotHealthy"))
	require.NoError(t, l.SetCondition(t.Context(), "gpu-well", "SysLogsXIDError", corev1.ConditionFalse, "SysLogsXIDErrorIsHealthy"))
	_, err := l.Client().AppsV1().DaemonSets("kube-system").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "cilium"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "cilium"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k8s-app": "cilium"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "cilium-agent", Image: "none"}}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	agent(t, l, "agent-sick", false)
	agent(t, l, "agent-well", true)
	l.Break("silent")

	want := []string{
		"CiliumAgentNotReady agent-sick cilium-agent-not-ready", "CiliumAgentNotReady agent-tainted cilium-agent-not-ready",
		selfTestFires, sourceSeenFires,
		"NodeDiskPressure disk node-disk-pressure", "NodeFilesystemReadOnly read-only node-filesystem-read-only",
		"NodeGPUCountWrong gpu-lost node-gpu-count", "NodeGPUCountWrong gpu-none node-gpu-count",
		"NodeGPUFault gpu-no-label node-gpu-fault",
		"NodeHeartbeatLost silent node-heartbeat-lost", "NodeKernelDeadlock deadlocked node-kernel-deadlock",
		"NodeNotReady silent node-not-ready", "NodeProblemDetected deadlocked node-problem-detected",
		"NodeSubsystemNotReady disk node-subsystem-not-ready",
	}
	fires := func() bool { return slices.Equal(want, firing(l)) }
	require.Eventually(t, fires, 5*time.Minute, time.Second, "%v", want)
	evaluated(t, l, 15)
	require.Eventually(t, fires, lab.Patience, time.Second, "nothing else is only slow to fire, and goes on: %v", want)

	many := func() bool { return slices.Contains(firing(l), "NodesNotReady  none") }
	for i, node := range []string{"node-0", "node-1", "gpu-well", "gpu-shared"} { // together with the silent node, five of fourteen
		l.Break(node)
		if i == 2 {
			require.Eventually(t, func() bool {
				now := firing(l)
				return !slices.ContainsFunc([]string{"silent", "node-0", "node-1", "gpu-well"}, func(lost string) bool {
					return !slices.Contains(now, "NodeNotReady "+lost+" node-not-ready")
				})
			}, 5*time.Minute, time.Second)
			evaluated(t, l, 12)
			require.Eventually(t, func() bool { return !many() }, lab.Patience, time.Second, "four of fourteen are not many")
		}
	}
	require.Eventually(t, many, 5*time.Minute, time.Second)

	// Without kube-state-metrics every alert about a node ends, although no node was repaired. Only
	// DrydockSourceDown fires.
	stateMetrics := l.Process("kube-state-metrics")
	stateMetrics.Kill()
	require.Eventually(t, func() bool { return slices.Equal([]string{selfTestFires, "DrydockSourceDown  none"}, firing(l)) }, 5*time.Minute, time.Second)
	require.NoError(t, stateMetrics.Start(t.Context()))
	require.Eventually(t, func() bool {
		now := firing(l)
		return !slices.Contains(now, "DrydockSourceDown  none") && many() && slices.Contains(now, "NodeNotReady silent node-not-ready")
	}, 5*time.Minute, time.Second)
}
