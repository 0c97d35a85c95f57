package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestEveryKeyIsDescribedAndTyped(t *testing.T) {
	for _, k := range Keys() {
		require.NotEmpty(t, k.Description, k.Path)
		require.NotEmpty(t, k.Type, k.Path)
		require.Regexp(t, `\.$`, k.Description, k.Path)
	}
}

// Everything that the design's full example says is a key with the default that it shows.
func TestFullExampleShowsTheDefaults(t *testing.T) {
	var example map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(FullExample), &example))
	delete(example, "policies")
	root := map[string]any{"webhook": map[string]any{}, "providers": map[string]any{"civo": map[string]any{}}}
	loadSchema().root.fill(root, root)
	var different []string
	compare(t, "", example, root, &different)
	require.ElementsMatch(t, []string{
		"apiVersion", "kind", "mode", "cluster", "receiver.tokenFile", "alertmanager.urls",
		"providers.civo.clusterID", "providers.civo.region", "providers.civo.apiKeyFile",
	}, different)
}

func compare(t *testing.T, path string, example, filled any, different *[]string) {
	t.Helper()
	mapping, ok := example.(map[string]any)
	with, both := filled.(map[string]any)
	if !ok || !both {
		if flow(example) != flow(filled) {
			*different = append(*different, path)
		}
		return
	}
	for key, value := range mapping {
		compare(t, join(path, key), value, with[key], different)
	}
}
