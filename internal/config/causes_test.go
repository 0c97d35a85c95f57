package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/routing"
)

// causes are what can be wrong with a node, by the label of their rules, and the for of each. A
// rule with a for of less than ten minutes looks minutes back by itself: Prometheus restores no
// shorter for after a restart.
var causes = map[string]struct{ rule, lasts string }{
	"node-not-ready":         {"NodeNotReady", "2m30s"},
	"node-heartbeat-lost":    {"NodeHeartbeatLost", "2m"},
	"node-gpu-count":         {"NodeGPUCountWrong", "10m"},
	"node-disk-pressure":     {"NodeDiskPressure", "30m"},
	"cilium-agent-not-ready": {"CiliumAgentNotReady", "10m"},

	"node-kernel-deadlock":      {"NodeKernelDeadlock", "2m30s"},
	"node-filesystem-read-only": {"NodeFilesystemReadOnly", "2m30s"},
	"node-problem-detected":     {"NodeProblemDetected", "2m30s"},
	"node-subsystem-not-ready":  {"NodeSubsystemNotReady", "2m30s"},
	"node-gpu-fault":            {"NodeGPUFault", "2m30s"},
}

// shippedRule is one rule as it is shipped.
type shippedRule struct {
	Alert, Expr, For string
	Labels           map[string]string
	Annotations      map[string]string
}

func readRule(t *testing.T, name string) shippedRule {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../rules", name+".yaml"))
	require.NoError(t, err)
	var content struct {
		Groups []struct{ Rules []shippedRule }
	}
	require.NoError(t, yaml.Unmarshal(data, &content))
	require.Len(t, content.Groups, 1)
	require.Len(t, content.Groups[0].Rules, 1)
	return content.Groups[0].Rules[0]
}

// planFor is what happens to a node with the labels when the alert of the cause fires on it; nil:
// no policy takes it.
func planFor(c *Config, cause string, labels map[string]string) *remediations.Policy {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}}
	route, _ := routing.Of(c.Core, map[string]string{"alertname": causes[cause].rule, "node": "n1", "remediation": cause}, func(string) *corev1.Node { return n })
	return route.Policy
}

func labelsOf(cause string) model.LabelSet {
	return model.LabelSet{"remediation": model.LabelValue(cause)}
}

func replaces(p *remediations.Policy) bool {
	return slices.ContainsFunc(p.Plan, func(s remediations.Step) bool { return s.Name == "replace" })
}

// gpuNode are labels that a GPU node may have. One whose label cannot be read, or says 0, is still
// not to be replaced.
var gpuNode = []map[string]string{
	{"nvidia.com/gpu.count": "8"}, {"nvidia.com/gpu.count": "0"}, {"nvidia.com/gpu.count": ""}, {"nvidia.com/gpu.count": "eight"},
	{"nvidia.com/gpu.count": "1", "kubernetes.civo.com/civo-node-pool": "p1"},
}

func TestEachCauseHasItsOwnClock(t *testing.T) {
	for cause, want := range causes {
		r := readRule(t, want.rule)
		require.Equal(t, want.rule, r.Alert)
		require.Equal(t, want.lasts, r.For, cause)
		require.Equal(t, cause, r.Labels["remediation"])
		require.NotContains(t, r.Expr, "unschedulable", "cordoning a node must not end its alert")
		require.NotContains(t, r.Expr, "NetworkUnavailable", "Cilium hardly ever takes it back")
	}
	files, err := filepath.Glob("../../rules/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		r := readRule(t, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		if strings.HasPrefix(r.Labels["remediation"], "node-") || strings.HasPrefix(r.Labels["remediation"], "cilium-") {
			require.Contains(t, causes, r.Labels["remediation"], "each alert of a node is a cause, and is looked at here")
		}
	}
}

func TestARuleSaysWhatPeopleAndRoutesNeed(t *testing.T) {
	for cause, want := range causes {
		r := readRule(t, want.rule)
		require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], cause)
		require.Contains(t, r.Annotations["summary"], "{{ $labels.node }}", cause)
		require.Contains(t, r.Annotations["description"], "{{ $labels.node }}", cause)
		require.Equal(t, "https://github.com/drydock-dev/drydock/blob/main/rules/runbooks/"+want.rule+".md", r.Annotations["runbook_url"])
		runbook, err := os.ReadFile(filepath.Join("../../rules/runbooks", want.rule+".md"))
		require.NoError(t, err)
		at := 0
		for _, heading := range []string{"# " + want.rule + "\n", "\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## What Drydock does\n", "\n## Mitigation\n"} {
			i := strings.Index(string(runbook)[at:], heading)
			require.GreaterOrEqual(t, i, 0, "%s: %q is missing or out of its place", want.rule, heading)
			at += i
		}
		for _, p := range Shipped().Policies {
			if p.Match.Matches(labelsOf(cause)) {
				require.Contains(t, string(runbook), "`"+p.Name+"`", "the runbook of %s must say what policy %s does", want.rule, p.Name)
			}
		}
	}
}

func TestGPUNodesAreNeverReplacedByAShippedPolicy(t *testing.T) {
	shipped := Shipped()
	for _, labels := range gpuNode {
		for cause := range causes {
			p := planFor(shipped, cause, labels)
			require.NotNil(t, p, "%s on a GPU node", cause)
			require.False(t, replaces(p), "%s of %s", p.Name, cause)
			last := p.Plan[len(p.Plan)-1]
			require.Equal(t, "reboot", last.Name, "%s ends Exhausted after its attempts", p.Name)
			require.Equal(t, "40m0s", last.Wait.String(), p.Name)
			require.True(t, p.CordonExhausted, p.Name)
		}
		// Whatever is switched off, or comes in whatever order, no other policy takes its place.
		for _, p := range shipped.Policies {
			if replaces(p.Policy) {
				require.NotNil(t, p.NodeSelector, p.Name)
				require.False(t, p.NodeSelector.Matches(k8slabels.Set(labels)), "%s takes GPU nodes", p.Name)
			}
		}
	}
	require.Equal(t, 3, planFor(shipped, "node-gpu-count", gpuNode[0]).Plan[0].Attempts)
}

func TestAPolicyOfGPUNodesThatIsSwitchedOffLeavesThemAlone(t *testing.T) {
	shipped := Shipped()
	for cause := range causes {
		gpu := planFor(shipped, cause, gpuNode[0])
		c, _ := mustLoad(t, base+"policies: [{name: "+gpu.Name+", mode: \"off\", match: ['a=\"b\"'], plan: [{step: reboot}]}]\n")
		require.Nil(t, planFor(c, cause, gpuNode[0]), "%s is off, and nothing else takes its nodes", gpu.Name)
	}
}

// comesBackWithABoot are the causes whose condition may be set again right after each boot of a
// machine that works: by a volume that is attached again, or by one line of a log.
var comesBackWithABoot = map[string]bool{"node-filesystem-read-only": true, "node-subsystem-not-ready": true}

// TestAConditionThatMayComeBackWithEachBootReplacesNoMachine: the repair ends Exhausted, and a
// person looks. A person may add the replacement.
func TestAConditionThatMayComeBackWithEachBootReplacesNoMachine(t *testing.T) {
	shipped := Shipped()
	for cause := range comesBackWithABoot {
		p := planFor(shipped, cause, nil)
		var steps []string
		for _, s := range p.Plan {
			steps = append(steps, s.Name)
		}
		require.Equal(t, []string{"drain", "reboot"}, steps, cause)
		require.True(t, p.CordonExhausted, cause)

		c, _ := mustLoad(t, base+"policies: [{name: "+cause+", plan: [{step: drain, timeout: 30m, onTimeout: stop}, {step: reboot, wait: 10m}, {step: replace, wait: 20m}]}]\n")
		require.True(t, replaces(planFor(c, cause, nil)), cause)
	}
	require.True(t, replaces(planFor(shipped, "node-kernel-deadlock", nil)), "the control: a boot clears it")
}

func TestStandardNodesEndInAReplacement(t *testing.T) {
	shipped := Shipped()
	for cause := range causes {
		p := planFor(shipped, cause, map[string]string{"kubernetes.civo.com/node-pool": "p1"})
		if cause == "node-gpu-count" || cause == "node-gpu-fault" {
			require.Nil(t, p, "a node without the label is no GPU node")
			continue
		}
		require.NotNil(t, p, cause)
		if comesBackWithABoot[cause] {
			continue
		}
		n := len(p.Plan)
		require.Contains(t, p.Plan[:n-1], remediations.Step{Name: "drain", Attempts: 1, Timeout: 30 * time.Minute}, "%s: it stops when its time is over", p.Name)
		require.Equal(t, "replace", p.Plan[n-1].Name)
		require.Equal(t, "20m0s", p.Plan[n-1].Wait.String())
		for _, s := range p.Plan {
			if s.Name != "reboot" {
				continue
			}
			wait, attempts := "10m0s", 2
			if p.Plan[0].Name == "drain" {
				attempts = 1 // its pods are gone, and the next step does not disturb them
			}
			if cause == "node-problem-detected" {
				wait = "40m0s" // what counts restarts looks back twenty minutes, also over a reboot
			}
			require.Equal(t, wait, s.Wait.String(), p.Name)
			require.Equal(t, attempts, s.Attempts, p.Name)
			require.False(t, s.Soft)
		}
	}
	require.Equal(t, "drain", planFor(shipped, "node-disk-pressure", nil).Plan[0].Name, "a reboot frees no disk")
}

// Each cause: off, or none, only a reboot, or a replacement without one; and only in some pools.
func TestACauseCanBeSwitchedOffOrGivenAnotherPlan(t *testing.T) {
	shipped := Shipped()
	for cause := range causes {
		for action, tc := range map[string]struct {
			keys  string
			steps []string
		}{
			"none":    {`mode: "off", plan: [{step: reboot, wait: 10m}]`, nil},
			"reboot":  {`plan: [{step: reboot, wait: 10m, attempts: 2, soft: true}]`, []string{"reboot"}},
			"replace": {`plan: [{step: drain, timeout: 30m}, {step: replace, wait: 20m}]`, []string{"drain", "replace"}},
		} {
			c, _ := mustLoad(t, base+"mode: enforce\npolicies: [{name: "+cause+`, nodeSelector: {}, match: ['remediation="`+cause+`"'], `+tc.keys+"}]\n")
			var steps []string
			p := planFor(c, cause, nil)
			if p != nil {
				require.Equal(t, remediations.ModeEnforce, p.Mode)
				for _, s := range p.Plan {
					steps = append(steps, s.Name)
				}
			}
			require.Equal(t, tc.steps, steps, "%s: %s", cause, action)
			for other := range causes {
				if other != cause {
					require.Equal(t, planFor(shipped, other, nil) == nil, planFor(c, other, nil) == nil, "%s does not touch %s", cause, other)
				}
			}
		}
	}
}

func TestPoolsAreChosenByASelector(t *testing.T) {
	for _, label := range []string{"kubernetes.civo.com/civo-node-pool", "kubernetes.civo.com/node-pool"} {
		c, _ := mustLoad(t, base+`policies:
- name: node-not-ready
  match: ['remediation="node-not-ready"']
  nodeSelector: {matchExpressions: [{key: `+label+`, operator: In, values: [p1, p2]}]}
  plan: [{step: reboot, wait: 10m}]
`)
		require.NotNil(t, planFor(c, "node-not-ready", map[string]string{label: "p1"}))
		require.NotNil(t, planFor(c, "node-not-ready", map[string]string{label: "p2"}))
		require.Nil(t, planFor(c, "node-not-ready", map[string]string{label: "p3"}), "a pool that is not named")
		require.Nil(t, planFor(c, "node-not-ready", nil), "a node of no pool")
		require.NotNil(t, planFor(Shipped(), "node-not-ready", map[string]string{label: "p3"}), "without a selector: all")
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "p1"}}}
		require.Equal(t, "p1", c.Core.Pool(n), "limits count by either label")
	}
}

func TestShippedPoliciesObserveByDefault(t *testing.T) {
	for mode, want := range map[string]remediations.Mode{"": remediations.ModeObserve, "mode: observe\n": remediations.ModeObserve, "mode: enforce\n": remediations.ModeEnforce} {
		c, _ := mustLoad(t, base+mode)
		require.Len(t, c.Policies, len(Shipped().Policies))
		for _, p := range c.Policies {
			require.Equal(t, want, p.Mode, p.Name)
		}
	}
}

// TestTheMildestStepComesFirst: in each plan the steps grow more invasive, and those that reach
// every node are in none.
func TestTheMildestStepComesFirst(t *testing.T) {
	shipped := Shipped()
	for _, p := range shipped.Policies {
		before := 0
		for i, s := range p.Plan {
			r := remediations.Shipped()[s.Name]
			if s.Name == "drain" && i+1 < len(p.Plan) && p.Plan[i+1].Name == "reboot" {
				continue // of a node that still works: emptied, a reboot disturbs no pod any more
			}
			require.GreaterOrEqual(t, r.Invasive, before, "%s: %s", p.Name, s.Name)
			require.False(t, r.ClusterWide, p.Name)
			before = r.Invasive
		}
	}
	for policy, first := range map[string]string{
		"cilium-agent-not-ready": "restart-cni", "gpu-cilium-agent-not-ready": "restart-cni", "cni-not-ready": "restart-cni", "gpu-cni-not-ready": "restart-cni",
		"kube-proxy-not-ready": "restart-kube-proxy", "gpu-kube-proxy-not-ready": "restart-kube-proxy",
		"node-not-ready": "restart-kubelet", "gpu-node-not-ready": "restart-kubelet", "node-heartbeat-lost": "restart-kubelet", "gpu-node-heartbeat-lost": "restart-kubelet",
	} {
		require.Equal(t, first, shipped.Core.Policy(policy).Plan[0].Name, policy)
	}
}
