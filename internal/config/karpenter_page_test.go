package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	karpenter "drydock.dev/drydock/remediations/providers/karpenter/settings"
)

// TestTheExampleOfTheKarpenterPageLoads: the values that people copy from
// docs/providers/karpenter.md are taken, and serve Karpenter's nodes.
func TestTheExampleOfTheKarpenterPageLoads(t *testing.T) {
	_, blocks := examples(t, "providers/karpenter.md")
	require.Len(t, blocks, 1)
	var values struct{ Config map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &values))
	c, _ := mustLoad(t, asTheChart(t, values.Config))
	serves := c.Providers["karpenter"].(*karpenter.Karpenter).NodeSelector
	require.True(t, serves.Matches(k8slabels.Set{"karpenter.sh/nodepool": "default"}))
	require.False(t, serves.Matches(k8slabels.Set{"eks.amazonaws.com/nodegroup": "system"}))
	require.Empty(t, Capabilities(c)["replace"])
	require.NotEmpty(t, Capabilities(c)["reboot"])
}
