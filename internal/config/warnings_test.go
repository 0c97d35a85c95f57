package config

import (
	"testing"

	"github.com/stretchr/testify/require"
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
	for _, name := range (Further{}).Remediations.Names() {
		all[name] = ""
	}
	c, warnings, err := load("drydock.yaml", []byte(base+"providers: {daemonSets: {cni: kube-system/cilium}}\n"), Options{SkipFiles: true, Capabilities: all})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Len(t, c.Core.Provided, len(all))
}

func TestCivoOverPlainHTTPIsSaid(t *testing.T) {
	for url, said := range map[string]bool{"http://civo.example.com": true, "http://127.0.0.1": false, "https://civo.example.com": false} {
		_, warnings := mustLoad(t, base+"providers: {civo: {apiURL: \""+url+"\", clusterID: c, region: r, apiKeyFile: f}}\n")
		if said {
			require.Contains(t, lines(warnings), "drydock.yaml:5: warning: providers.civo.apiURL: is not https")
		} else {
			require.NotContains(t, lines(warnings), "apiURL")
		}
	}
}

// TestTheConfigurationSaysWhoServesWhichNodes: Civo its own by their spec.providerID, unless it selects others; the rest any Node.
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
