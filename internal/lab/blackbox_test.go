package lab

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestScrapeConfigOfTheOperatorEqualsThatOfPrometheus: the lab runs only the second file, so the
// first one must have the same content.
func TestScrapeConfigOfTheOperatorEqualsThatOfPrometheus(t *testing.T) {
	read, err := readSidecarScrape()
	require.NoError(t, err)
	require.Len(t, read.Jobs, 1)
	require.Contains(t, read.Modules, "sidecar_healthz")
	path, err := shipped("scrapeconfig-sidecars.yaml")
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(data, &object))
	require.Equal(t, asOperator(read.Jobs[0]), asOperator(object.Spec))
}

// asOperator writes a job with the keys and values that the operator's kinds use.
func asOperator(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			words := strings.Split(strings.ReplaceAll(key, "kubernetes_sd", "kubernetesSD"), "_")
			for i, word := range words[1:] {
				words[i+1] = strings.ToUpper(word[:1]) + word[1:]
			}
			name := strings.Join(words, "")
			if name == "relabelConfigs" {
				name = "relabelings"
			}
			out[name] = asOperator(value[key])
			if word, ok := out[name].(string); ok && (name == "action" || name == "role") {
				out[name] = strings.ToLower(word)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = asOperator(value[i])
		}
		return out
	}
	return value
}
