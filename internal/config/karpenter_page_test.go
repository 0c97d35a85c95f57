package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	karpenter "drydock.dev/drydock/remediations/karpenter/settings"
)

// TestTheExampleOfTheKarpenterPageLoads: the values that people copy from docs/karpenter.md are taken, and serve Karpenter's nodes.
func TestTheExampleOfTheKarpenterPageLoads(t *testing.T) {
	page, err := os.ReadFile("../../docs/karpenter.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	require.Len(t, blocks, 1)
	text, _, _ := strings.Cut(blocks[0], "```")
	var values struct{ Config map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(text), &values))
	values.Config["apiVersion"], values.Config["kind"] = "drydock.dev/v1alpha1", "Config"
	values.Config["receiver"] = map[string]any{"insecure": true}
	out, err := yaml.Marshal(values.Config)
	require.NoError(t, err)
	c, _ := mustLoad(t, string(out))
	serves := c.Providers["karpenter"].(*karpenter.Karpenter).NodeSelector
	require.True(t, serves.Matches(k8slabels.Set{"karpenter.sh/nodepool": "default"}))
	require.False(t, serves.Matches(k8slabels.Set{"eks.amazonaws.com/nodegroup": "system"}))
	require.Empty(t, Capabilities(c)["replace"])
	require.NotEmpty(t, Capabilities(c)["reboot"])
}
