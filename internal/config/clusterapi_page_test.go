package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/types"

	clusterapi "drydock.dev/drydock/remediations/clusterapi/settings"
)

// TestTheExampleOfTheClusterAPIPageLoads: the values that people copy from docs/cluster-api.md are taken, and serve the nodes that the
// page says. What it does with a Machine that no health check selects is a choice of two.
func TestTheExampleOfTheClusterAPIPageLoads(t *testing.T) {
	page, err := os.ReadFile("../../docs/cluster-api.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	require.Len(t, blocks, 1)
	text, _, _ := strings.Cut(blocks[0], "```")
	for without, deletes := range map[string]bool{"": false, "conditions": false, "delete": true} {
		var values struct{ Config map[string]any }
		require.NoError(t, yaml.Unmarshal([]byte(text), &values))
		values.Config["apiVersion"], values.Config["kind"] = "drydock.dev/v1alpha1", "Config"
		values.Config["receiver"] = map[string]any{"insecure": true}
		if without != "" {
			values.Config["providers"].(map[string]any)["clusterAPI"].(map[string]any)["withoutHealthCheck"] = without
		}
		out, err := yaml.Marshal(values.Config)
		require.NoError(t, err)
		c, _ := mustLoad(t, string(out))
		p := c.Providers["clusterAPI"].(*clusterapi.ClusterAPI)
		require.Equal(t, types.NamespacedName{Namespace: "capi-workload", Name: "prod-1"}, p.Cluster)
		require.Equal(t, deletes, p.Delete)
		require.Empty(t, Capabilities(c)["replace"])
		require.NotEmpty(t, Capabilities(c)["reboot"])
		serves := p.Serves()
		require.Contains(t, string(page), "carries out replace for "+serves.Serves())
	}
}
