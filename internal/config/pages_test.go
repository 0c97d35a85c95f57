package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// examples are a page below docs and the blocks of YAML that people copy from it.
func examples(t *testing.T, name string) (page string, blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	require.NoError(t, err)
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		blocks = append(blocks, block)
	}
	return string(text), blocks
}

// asTheChart is the configuration in the chart's values, with what the chart adds.
func asTheChart(t *testing.T, config map[string]any) string {
	t.Helper()
	config["apiVersion"], config["kind"] = "drydock.dev/v1alpha1", "Config"
	config["receiver"] = map[string]any{"insecure": true}
	out, err := yaml.Marshal(config)
	require.NoError(t, err)
	return string(out)
}
