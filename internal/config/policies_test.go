package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/remediations"
)

func names(c *Config) []string {
	var out []string
	for _, p := range c.Policies {
		out = append(out, p.Name)
	}
	return out
}

func TestTheUsersPoliciesComeFirst(t *testing.T) {
	c, _ := mustLoad(t, base+`mode: enforce
policies:
- {name: zzz, match: ['a="b"'], plan: [{step: reboot}]}
- {name: gpu-node-not-ready, match: ['a="b"'], mode: "off", plan: [{step: reboot}]}
`)
	require.Equal(t, []string{"zzz", "gpu-node-not-ready"}, names(c)[:2])
	require.Len(t, c.Policies, len(Shipped().Policies)+1, "one of the two replaces a shipped one")
	require.Equal(t, remediations.ModeOff, c.Policies[1].Mode)
	for _, p := range c.Policies[:2] {
		require.Equal(t, "drydock.yaml", p.From)
	}
	for _, p := range c.Policies[2:] {
		require.Equal(t, "shipped", p.From)
		require.Equal(t, remediations.ModeEnforce, p.Mode, "a shipped policy takes the global mode")
	}
}

func TestAPolicyChangesTheShippedOneOfItsName(t *testing.T) {
	shipped := map[string]*remediations.Policy{}
	for _, p := range Shipped().Policies {
		shipped[p.Name] = p.Policy
	}
	c, _ := mustLoad(t, base+`policies:
- {name: node-not-ready, mode: enforce}
- {name: node-disk-pressure, plan: [{step: reboot}]}
- {name: gpu-node-not-ready, nodeSelector: {}, witness: none}
- {name: mine, match: ['a="b"'], plan: [{step: reboot}]}
`)
	require.Equal(t, []string{"node-not-ready", "node-disk-pressure", "gpu-node-not-ready", "mine"}, names(c)[:4])
	require.Len(t, c.Policies, len(shipped)+1)

	enforced := *shipped["node-not-ready"]
	enforced.Mode = remediations.ModeEnforce
	require.Equal(t, &enforced, c.Policies[0].Policy, "one field")

	own := c.Policies[1].Policy
	require.Len(t, own.Plan, 1, "the plan is replaced whole")
	require.Equal(t, "reboot", own.Plan[0].Name)
	planned := *shipped["node-disk-pressure"]
	planned.Plan = own.Plan
	require.Equal(t, &planned, own)

	require.Nil(t, c.Policies[2].NodeSelector, "an empty selector is a change, too")
	require.Equal(t, shipped["gpu-node-not-ready"].Plan, c.Policies[2].Plan)
}

func TestAMisspeltNameOfAShippedPolicyIsAFault(t *testing.T) {
	_, _, err := load("drydock.yaml", []byte(base+"policies: [{name: node-not-redy, mode: enforce}]\n"), Options{SkipFiles: true})
	require.ErrorContains(t, err, `there is no shipped policy "node-not-redy", and a policy of your own needs match and plan; did you mean "node-not-ready"?`)
	require.Len(t, err, 1, "one sentence is enough")
}

func TestChangesAreWhatDiffersFromTheShippedPolicies(t *testing.T) {
	c, _ := mustLoad(t, base+`policies:
- {name: node-not-ready, mode: enforce, for: 2m, cooldown: 10m}
- {name: node-disk-pressure, mode: observe}
- {name: mine, match: ['a="b"'], plan: [{step: reboot}]}
`)
	out, err := c.ChangesYAML()
	require.NoError(t, err)
	golden(t, "testdata/changes.yaml", string(out))
	again, _ := mustLoad(t, base+string(out))
	require.Equal(t, c.Core.Policies[0], again.Core.Policies[0])
	require.Equal(t, c.Core.Policies[2], again.Core.Policies[1])

	none, _ := mustLoad(t, base)
	out, err = none.ChangesYAML()
	require.NoError(t, err)
	require.Equal(t, "policies: []\n", string(out))
}

func TestADrainSaysWhatBecomesOfPodsWithoutAController(t *testing.T) {
	c, _ := mustLoad(t, base+`policies:
- {name: a, match: ['a="a"'], plan: [{step: drain}, {step: reboot}]}
- {name: b, match: ['a="b"'], plan: [{step: drain, withoutController: refuse}, {step: reboot}]}
- {name: c, match: ['a="c"'], plan: [{step: drain, withoutController: wait}, {step: reboot}]}
- {name: d, match: ['a="d"'], plan: [{step: drain, withoutController: evict}, {step: reboot}]}
`)
	for i, want := range []remediations.WithoutController{
		remediations.WithoutControllerRefuse, remediations.WithoutControllerRefuse, remediations.WithoutControllerWait, remediations.WithoutControllerEvict,
	} {
		require.Equal(t, want, c.Policies[i].Plan[0].WithoutController, c.Policies[i].Name)
	}
	require.Equal(t, "drain 30m or stop, reboot 10m", c.Policies[1].Steps())
	require.Equal(t, "drain 30m or stop (withoutController: wait), reboot 10m", c.Policies[2].Steps())
	require.Equal(t, "drain 30m or stop (withoutController: evict), reboot 10m", c.Policies[3].Steps())
}

func TestShippedPolicies(t *testing.T) {
	c := Shipped()
	require.Equal(t, []string{
		"cilium-agent-not-ready", "cni-not-ready", "gpu-cilium-agent-not-ready", "gpu-cni-not-ready", "gpu-kube-proxy-not-ready", "gpu-mesh-forwarding-fault", "gpu-node-disk-pressure",
		"gpu-node-filesystem-read-only", "gpu-node-heartbeat-lost", "gpu-node-kernel-deadlock", "gpu-node-not-ready",
		"gpu-node-problem-detected", "gpu-node-subsystem-not-ready",
		"kube-proxy-not-ready", "mesh-forwarding-fault", "node-disk-pressure", "node-filesystem-read-only", "node-gpu-count", "node-gpu-fault", "node-heartbeat-lost", "node-kernel-deadlock", "node-not-ready",
		"node-problem-detected", "node-subsystem-not-ready", "apiserver-down", "mesh-leader-degraded", "mesh-pair-unreachable", "sidecar-not-ready",
	}, names(c))
	out, err := c.PoliciesYAML()
	require.NoError(t, err)
	golden(t, "testdata/shipped.yaml", string(out))
	b := &builder{}
	b.loadShipped(map[string]any{"mode": "observe"})
	for _, d := range b.shipped {
		require.Empty(t, d.faults)
	}
}

// A shipped policy is of no use without the alert that it answers, and that is of no use untested
// or unexplained.
func TestShippedPoliciesHaveARuleATestAndARunbook(t *testing.T) {
	for _, p := range Shipped().Policies {
		wanted := ""
		for _, m := range p.Match {
			if m.Name == "remediation" && m.Type == labels.MatchEqual {
				wanted = m.Value
			}
		}
		require.NotEmpty(t, wanted, "policy %s must match on remediation", p.Name)
		rule := ruleFor(t, wanted)
		require.NotEmpty(t, rule, "no file of rules/ has a rule with the label remediation: %s, which policy %s asks for", wanted, p.Name)
		require.FileExists(t, filepath.Join("../../rules/tests", rule+".yaml"))
		require.FileExists(t, filepath.Join("../../rules/runbooks", rule+".md"))
	}
}

// ruleFor returns the name, without its ending, of the rule file whose rule carries the label.
func ruleFor(t *testing.T, remediation string) string {
	t.Helper()
	files, err := filepath.Glob("../../rules/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var content struct {
			Groups []struct {
				Rules []struct {
					Labels map[string]string `yaml:"labels"`
				} `yaml:"rules"`
			} `yaml:"groups"`
		}
		require.NoError(t, yaml.Unmarshal(data, &content))
		for _, g := range content.Groups {
			for _, r := range g.Rules {
				if r.Labels["remediation"] == remediation {
					return strings.TrimSuffix(filepath.Base(file), ".yaml")
				}
			}
		}
	}
	return ""
}

func TestEffectivePoliciesLoadAgain(t *testing.T) {
	for name, text := range map[string]string{
		"shipped": base,
		"full":    FullExample,
		"odd": base + `policies:
- name: odd
  match: ['a="b", c=~"d|e"', "f!=\"it's\""]
  mode: "off"
  nodeSelector: {matchLabels: {a: "1", "x.example.com/b": "true"}, matchExpressions: [{key: c, operator: NotIn, values: ["1", no]}]}
  plan: [{step: drain}, {step: reboot, attempts: 10}]
`,
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := mustLoad(t, text)
			out, err := first.PoliciesYAML()
			require.NoError(t, err)
			second, _ := mustLoad(t, base+string(out))
			again, err := second.PoliciesYAML()
			require.NoError(t, err)
			require.Equal(t, string(out), string(again))
			require.Equal(t, first.Core.Policies, second.Core.Policies)
		})
	}
}
