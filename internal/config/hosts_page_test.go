package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	hostsettings "drydock.dev/drydock/remediations/providers/hosts/settings"
)

// TestTheValuesOfTheHostsPageLoad: what people copy from docs/providers/ssh.md is taken, and
// carries out what the page says.
func TestTheValuesOfTheHostsPageLoad(t *testing.T) {
	page, blocks := examples(t, "providers/ssh.md")
	require.Len(t, blocks, 3)
	var v struct {
		Secrets map[string]struct{ Name string }
		Config  map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &v))
	require.Contains(t, page, "kubectl create secret generic "+v.Secrets["hostsKey"].Name+" ")
	hosts := v.Config["providers"].(map[string]any)["hosts"].(map[string]any)
	hosts["keyFile"], hosts["knownHostsFile"] = "key", "known_hosts"
	c, _ := mustLoad(t, asTheChart(t, v.Config))
	of := c.Core.Providers[slices.IndexFunc(c.Core.Providers, func(p remediations.Provider) bool { return p.Name == "hosts" })]
	require.Contains(t, page, "`providers.hosts carries out "+strings.Join(of.Steps, ", ")+" for "+of.Serves()+"`")
}

// TestTheExamplesOfTheHostsPageLoad: the values of the page's two examples load, and do what the
// page says on the Nodes that it names.
func TestTheExamplesOfTheHostsPageLoad(t *testing.T) {
	_, blocks := examples(t, "providers/ssh.md")
	values := blocks[1:]
	for i, want := range []struct {
		kubelet string
		plan    []string
	}{{"kubelet.service", []string{"restart-kubelet", "reboot", "sysrq"}}, {"k3s-agent.service", []string{"restart-kubelet", "reboot"}}} {
		var v struct {
			Secrets map[string]struct{ Name string }
			Config  map[string]any
		}
		require.NoError(t, yaml.Unmarshal([]byte(values[i]), &v))
		require.Equal(t, "drydock-hosts", v.Secrets["hostsKey"].Name)
		hosts := v.Config["providers"].(map[string]any)["hosts"].(map[string]any)
		hosts["keyFile"], hosts["knownHostsFile"] = "key", "known_hosts"
		c, warnings := mustLoad(t, asTheChart(t, v.Config))
		require.NotContains(t, lines(warnings), "step ")
		h := c.Providers["hosts"].(*hostsettings.Hosts)
		require.Equal(t, want.kubelet, h.Kubelet)
		require.NotContains(t, lines(warnings), "sysrq")
		var plan []string
		for _, step := range c.Core.Policy("node-not-ready").Plan {
			plan = append(plan, step.Name)
		}
		require.Equal(t, want.plan, plan, "the last resort comes last")
		for _, step := range plan {
			for node, by := range map[*corev1.Node]string{
				{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}}: "hosts",
				{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}: "",
			} {
				provider, against := c.Core.ProviderOf(step, node)
				require.Equal(t, by, provider, "%s of %s: %s", step, node.Name, against)
			}
		}
	}
}
