package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

func TestWarnings(t *testing.T) {
	_, warnings := mustLoad(t, `apiVersion: drydock.dev/v1alpha1
kind: Config
mode: enforce
receiver:
  insecure: true
webhook: {exempt: {groups: ["system:authenticated"]}}
alertmanager:
  urls: ["http://alertmanager:9093"]
  watchdog: ""
policies:
- name: nothing
  match: ['a="b"']
  plan:
  - step: drain
  - step: reboot
- {name: silent, match: ['a="b"'], mode: "off", plan: [{step: drain}]}
`)
	golden(t, "testdata/all.warnings", lines(warnings))
	for _, w := range warnings {
		require.True(t, w.Warning)
	}
}

func TestCapabilitiesAreAParameter(t *testing.T) {
	all := map[string]string{}
	for _, name := range (remediations.Registry{}).Names() {
		all[name] = ""
	}
	c, warnings, err := load("drydock.yaml", []byte(base+"providers: {daemonSets: {cni: kube-system/cilium}}\n"), Options{SkipFiles: true, Capabilities: all})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Len(t, c.Core.Provided, len(all))
}

func TestCivoOverPlainHTTPIsWarnedOf(t *testing.T) {
	for url, said := range map[string]bool{"http://civo.example.com": true, "http://127.0.0.1": false, "https://civo.example.com": false} {
		_, warnings := mustLoad(t, base+"providers: {civo: {apiURL: \""+url+"\", clusterID: c, region: r, apiKeyFile: f}}\n")
		if said {
			require.Contains(t, lines(warnings), "drydock.yaml:5: warning: providers.civo.apiURL: is not https")
		} else {
			require.NotContains(t, lines(warnings), "apiURL")
		}
	}
}

// TestTheConfigurationSaysWhoServesWhichNodes: Civo its own by their spec.providerID, unless it
// selects others; the rest any Node.
func TestTheConfigurationSaysWhoServesWhichNodes(t *testing.T) {
	for selects, nodes := range map[string]string{
		"":                                      "Nodes whose spec.providerID begins with civo://",
		", nodeSelector: {matchLabels: {a: b}}": "Nodes with the labels a=b",
		", nodeSelector: {}":                    "any Node",
	} {
		c, _ := mustLoad(t, base+"providers: {civo: {clusterID: c, region: r, apiKeyFile: f"+selects+"}, daemonSets: {cni: kube-system/cilium}}\n")
		require.Len(t, c.Core.Providers, 2)
		require.Equal(t, []string{"reboot", "replace"}, c.Core.Providers[0].Steps)
		require.Equal(t, nodes, c.Core.Providers[0].Serves())
		require.Equal(t, "daemonSets", c.Core.Providers[1].Name)
		require.Equal(t, []string{"restart-cni"}, c.Core.Providers[1].Steps)
		require.Equal(t, "any Node", c.Core.Providers[1].Serves())
	}
}

// TestAPolicyThatSelectsFewerNodesThanOthersIsNamed: who writes one policy for some pools means the
// installation. A dead node of another pool is still rebooted by the policies for other alerts,
// unless the provider serves those pools only.
func TestAPolicyThatSelectsFewerNodesThanOthersIsNamed(t *testing.T) {
	const civo = "providers: {civo: {clusterID: id, region: LON1, apiKeyFile: key%s}}\n"
	const pools = "matchExpressions: [{key: nvidia.com/gpu.count, operator: DoesNotExist}, {key: pool, operator: In, values: [a, b]}]"
	const plan = "plan: [{step: reboot, wait: 40m}]"
	one := "policies: [{name: node-not-ready, nodeSelector: {" + pools + "}, " + plan + "}]\n"
	var all strings.Builder
	all.WriteString("policies:\n")
	for _, p := range Shipped().Policies {
		if p.Kind == remediations.KindNode {
			all.WriteString("- {name: " + p.Name + ", nodeSelector: {matchLabels: {pool: a}}}\n")
		}
	}
	for name, test := range map[string]struct {
		text string
		said []string
	}{
		"one policy of many": {"mode: enforce\n" + fmt.Sprintf(civo, "") + one, []string{
			"policies[0].nodeSelector: policy node-not-ready selects only nodes with pool in (a,b), but other policies reboot all nodes (",
			"node-heartbeat-lost", "write the selector in providers.civo.nodeSelector instead",
		}},
		"all only observe":                     {"mode: observe\n" + fmt.Sprintf(civo, "") + one, []string{"policy node-not-ready selects only nodes with pool in (a,b)"}},
		"the provider serves these pools only": {"mode: enforce\n" + fmt.Sprintf(civo, ", nodeSelector: {matchLabels: {pool: a}}") + one, nil},
		"no provider reboots":                  {"mode: enforce\n" + one, nil},
		"every policy selects":                 {"mode: enforce\n" + fmt.Sprintf(civo, "") + all.String(), nil},
		"it alone enforces":                    {"mode: observe\n" + fmt.Sprintf(civo, "") + strings.Replace(one, "plan", "mode: enforce, plan", 1), nil},
		"it is off":                            {"mode: enforce\n" + fmt.Sprintf(civo, "") + strings.Replace(one, "plan", "mode: 'off', plan", 1), nil},
		"it reboots nothing":                   {"mode: enforce\n" + fmt.Sprintf(civo, "") + strings.Replace(one, plan, "plan: [{step: restart-kubelet}]", 1), nil},
		"it selects no pools":                  {"mode: enforce\n" + fmt.Sprintf(civo, "") + strings.Replace(one, pools, "matchExpressions: [{key: nvidia.com/gpu.count, operator: DoesNotExist}]", 1), nil},
		"another policy takes the same alert of the other nodes": {
			"mode: enforce\n" + fmt.Sprintf(civo, "") + "policies: [{name: slow, match: ['remediation=\"node-not-ready\"'], witness: [{ready: false}], nodeSelector: {" + pools + "}, " + plan + "}]\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings := mustLoad(t, base+test.text)
			for _, said := range test.said {
				require.Contains(t, lines(warnings), said)
			}
			require.Equal(t, test.said != nil, strings.Contains(lines(warnings), "selects only nodes with"), lines(warnings))
		})
	}
}
