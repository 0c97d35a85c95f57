package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	metal3 "drydock.dev/drydock/remediations/providers/metal3/settings"
)

// TestTheExampleOfTheMetal3PageLoads: the values that people copy from docs/providers/metal3.md are taken, and serve the nodes that the page says.
func TestTheExampleOfTheMetal3PageLoads(t *testing.T) {
	page, blocks := examples(t, "providers/metal3.md")
	require.Len(t, blocks, 1)
	var values struct{ Config map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &values))
	c, _ := mustLoad(t, asTheChart(t, values.Config))
	p := c.Providers["metal3"].(*metal3.Metal3)
	require.Equal(t, "metal3", p.Namespace)
	require.Empty(t, Capabilities(c)["reboot"])
	require.NotEmpty(t, Capabilities(c)["replace"])
	serves := p.Serves()
	require.Contains(t, page, "carries out reboot for "+serves.Serves())
}
