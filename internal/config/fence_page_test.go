package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	fence "drydock.dev/drydock/remediations/providers/fence/settings"
)

// TestTheExamplesOfTheFencePageLoad: the values that people copy from docs/providers/fence.md are
// taken, name what they mount, and serve any node; its other example is an agent, and its table is
// one.
func TestTheExamplesOfTheFencePageLoad(t *testing.T) {
	page, blocks := examples(t, "providers/fence.md")
	require.Len(t, blocks, 1)
	block := func(kind string) string {
		_, after, found := strings.Cut(page, "```"+kind+"\n")
		require.True(t, found)
		text, _, _ := strings.Cut(after, "```")
		return text
	}
	var values struct {
		SecretMounts []struct{ Path string } `yaml:"secretMounts"`
		Config       map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(blocks[0]), &values))
	c, warnings := mustLoad(t, asTheChart(t, values.Config))
	f := c.Providers["fence"].(*fence.Fence)
	require.Equal(t, "/usr/sbin/fence_ipmilan", f.Agents[0].Program)
	require.Equal(t, "/etc/drydock/"+values.SecretMounts[0].Path, f.Agents[0].SecretFiles["password"])
	require.Equal(t, "/etc/drydock/"+values.SecretMounts[1].Path, f.Agents[0].MachinesFile)
	require.Empty(t, Capabilities(c)["reboot"])
	require.True(t, f.Testifies())
	serves := f.Serves()
	require.Equal(t, "any Node", serves.Serves())
	require.NotContains(t, lines(warnings), "providers.fence")

	var agents []any
	require.NoError(t, yaml.Unmarshal([]byte(block("text")), &agents))
	values.Config["providers"].(map[string]any)["fence"].(map[string]any)["agents"] = agents
	c, _ = mustLoad(t, asTheChart(t, values.Config))
	require.NotNil(t, c.Providers["fence"].(*fence.Fence).Agents[0].Selector)

	machines, err := fence.ReadTable([]byte(block("csv")), &f.Agents[0])
	require.NoError(t, err)
	require.Len(t, machines, 2)
}
