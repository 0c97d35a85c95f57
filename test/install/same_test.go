package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// gitOps are the examples for tools that only render the chart, and the path of the chart's values
// in each.
var gitOps = map[string][]string{
	"argo-cd.yaml": {"spec", "source", "helm", "valuesObject"},
	"flux.yaml":    {"spec", "values"},
}

// gitOpsValues returns the chart's values in an example in deploy/.
func gitOpsValues(t *testing.T, file string) m {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "deploy", file))
	require.NoError(t, err)
	var found m
	for _, o := range objects(t, map[string]string{file: string(text)}) {
		if o.GetKind() != "Application" && o.GetKind() != "HelmRelease" {
			continue
		}
		at := o.Object
		for _, key := range gitOps[file] {
			next, ok := at[key].(map[string]any)
			require.True(t, ok, "%s has no %s", file, key)
			at = next
		}
		found = at
	}
	require.NotNil(t, found, file)
	return found
}

// TestTwoRenderingsAreTheSame, for every set of values and for the examples of Argo CD and Flux.
// Such a tool renders the chart at each sync. If the renderings differed, it would restart the pods
// each time.
func TestTwoRenderingsAreTheSame(t *testing.T) {
	all := variants(t)
	for file := range gitOps {
		all[file] = gitOpsValues(t, file)
	}
	for name, values := range all {
		first := render(t, "drydock", values)
		require.NotEmpty(t, first, name)
		second := render(t, "drydock", values)
		for file, text := range first {
			isSame(t, text, second[file], name+": "+file)
		}
	}
}

// TestHelmRendersTheSameTwice tests the same with the real Helm, without a cluster.
func TestHelmRendersTheSameTwice(t *testing.T) {
	for file := range gitOps {
		text, err := yaml.Marshal(gitOpsValues(t, file))
		require.NoError(t, err)
		values := filepath.Join(t.TempDir(), "values.yaml")
		require.NoError(t, os.WriteFile(values, text, 0o600))
		render := func() string {
			return helmAlone(t, "template", "drydock", filepath.Join(root(t), "charts", "drydock"), "--namespace", "drydock", "--values", values)
		}
		isSame(t, render(), render(), file)
	}
}

// isSame compares two texts. It names only the first line that differs, because the texts are long.
func isSame(t *testing.T, first, second, what string) {
	t.Helper()
	one, other := strings.Split(first, "\n"), strings.Split(second, "\n")
	for i := range min(len(one), len(other)) {
		require.Equal(t, one[i], other[i], "%s, line %d differs from one rendering to the next", what, i+1)
	}
	require.Len(t, other, len(one), what)
}
