package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/types"

	clusterapi "drydock.dev/drydock/remediations/providers/clusterapi/settings"
)

// TestTheExampleOfAManagementClusterElsewhereLoads: the second values that people copy from
// docs/providers/cluster-api.md. A kubeconfig that is not there is a fault.
func TestTheExampleOfAManagementClusterElsewhereLoads(t *testing.T) {
	_, blocks := examples(t, "providers/cluster-api.md")
	require.Len(t, blocks, 2)
	var values struct {
		SecretMounts []struct{ Path string } `yaml:"secretMounts"`
		Config       map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(blocks[1]), &values))
	text := asTheChart(t, values.Config)
	c, _, err := Read(strings.NewReader(text), Options{SkipFiles: true})
	require.NoError(t, err)
	require.Equal(t, "/etc/drydock/"+values.SecretMounts[0].Path, c.Providers["clusterAPI"].(*clusterapi.ClusterAPI).Kubeconfig)
	_, _, err = Read(strings.NewReader(text), Options{})
	require.ErrorContains(t, err, `providers.clusterAPI.kubeconfig: file "/etc/drydock/management/kubeconfig" does not exist`)
}

// TestTheExampleOfTheClusterAPIPageLoads: the values that people copy from
// docs/providers/cluster-api.md are taken, and serve the nodes that the page says. What it does
// with a Machine that no health check selects is a choice of two.
func TestTheExampleOfTheClusterAPIPageLoads(t *testing.T) {
	page, blocks := examples(t, "providers/cluster-api.md")
	require.Len(t, blocks, 2)
	for without, deletes := range map[string]bool{"": false, "conditions": false, "delete": true} {
		var values struct{ Config map[string]any }
		require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &values))
		if without != "" {
			values.Config["providers"].(map[string]any)["clusterAPI"].(map[string]any)["withoutHealthCheck"] = without
		}
		c, _ := mustLoad(t, asTheChart(t, values.Config))
		p := c.Providers["clusterAPI"].(*clusterapi.ClusterAPI)
		require.Equal(t, types.NamespacedName{Namespace: "capi-workload", Name: "prod-1"}, p.Cluster)
		require.Equal(t, deletes, p.Delete())
		require.Empty(t, Capabilities(c)["replace"])
		require.NotEmpty(t, Capabilities(c)["reboot"])
		serves := p.Serves()
		require.Contains(t, page, "carries out replace for "+serves.Serves())
	}
}
