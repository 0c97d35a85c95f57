package remediations_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
)

// TestARemediationComesWithItsChapterAndItsGoldens: every remediation with a Proof has a chapter in
// the documentation, and goldens that show it issued and proven.
func TestARemediationComesWithItsChapterAndItsGoldens(t *testing.T) {
	outputs, err := filepath.Glob("testdata/*/*.output.yaml")
	require.NoError(t, err)
	ofKinds, err := filepath.Glob("targets/*/testdata/*/*.output.yaml")
	require.NoError(t, err)
	ofTheRescue, err := filepath.Glob("rescue/apiserver/testdata/*/*.output.yaml")
	require.NoError(t, err)
	var goldens strings.Builder
	for _, f := range slices.Concat(outputs, ofKinds, ofTheRescue) {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		goldens.Write(text)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "reference", "steps.md"))
	require.NoError(t, err)
	whole := 0
	for name, r := range Shipped() {
		require.Equal(t, name, r.Name)
		require.NotEmpty(t, r.Verb, name)
		require.Equal(t, r.Once, r.Wait > 0, "%s: how long its proof may take", name)
		require.Equal(t, r.Once, r.Attempts > 0, "%s: how often it is issued", name)
		require.Equal(t, !r.Once, r.Timeout > 0, "%s: how long it may take", name)
		if r.Proof == nil {
			continue
		}
		whole++
		require.Contains(t, string(page), "\n## "+name+"\n", "docs/reference/steps.md has a chapter for each step")
		require.Contains(t, string(page), "\n| ["+name+"](#"+strings.ToLower(name)+") |", "and a row of its table")
		require.Contains(t, goldens.String(), name+":1", "no golden shows %s issued", name)
		switch {
		case r.PowersOff:
			require.Contains(t, goldens.String(), name+":1) and the node is not cured: the machine is\n    off", "no golden shows %s proven, which cures nothing", name)
		case r.Once: // a repeatable step prepares another, which cures
			require.Contains(t, goldens.String(), name+":1 cured it", "no golden shows %s proven", name)
		}
	}
	require.Positive(t, whole)
	require.IsIncreasing(t, Registry(nil).Names())
}
