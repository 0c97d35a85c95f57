package remediations_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// border is a rule of the linter about what some folders may import.
type border struct {
	ListMode string `json:"list-mode"`
	Files    []string
	Deny     []struct{ Pkg string }
}

// covers says that the rule is about the folder, and not about all of them.
func (b border) covers(folder string) bool {
	return slices.ContainsFunc(b.Files, func(files string) bool {
		of, one := strings.CutPrefix(strings.TrimSuffix(files, "/*.go"), "**/")
		below, all := strings.CutSuffix(of, "/**")
		return one && (of == folder || all && strings.HasPrefix(folder, below+"/") || of == "settings" && filepath.Base(folder) == of)
	})
}

// denies says that the rule forbids the package, by its very name or by a folder above it.
func (b border) denies(folder string) bool {
	return slices.ContainsFunc(b.Deny, func(d struct{ Pkg string }) bool {
		of, exactly := strings.CutSuffix(strings.TrimPrefix(d.Pkg, "drydock.dev/drydock/"), "$")
		return of == folder || !exactly && strings.HasPrefix(folder, of+"/")
	})
}

func borders(t *testing.T) map[string]border {
	t.Helper()
	var file struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]border }
			}
		}
	}
	text, err := os.ReadFile("../.golangci.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	return file.Linters.Settings.Depguard.Rules
}

// folders are those below the root that have code which is no test.
func folders(t *testing.T, below string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join("..", below), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		if !slices.Contains(out, folder) {
			out = append(out, folder)
		}
		return err
	}))
	return out
}

// TestEachFolderHasItsBorder: the linter has a rule for each folder of remediations and internal, so that one that is new is noticed. What
// speaks with an outside system is named where siblings are kept apart, with its section of the configuration, and the engine knows none.
func TestEachFolderHasItsBorder(t *testing.T) {
	rules, known := borders(t), folders(t, "remediations")
	require.Contains(t, known, "remediations/civo/settings", "the control")
	for _, folder := range append(folders(t, "internal"), known...) {
		covers := func(b border) bool { return b.covers(folder) }
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(rules)), covers), "no rule of depguard in .golangci.yaml names the folder %s: say what it may import", folder)
	}
	siblings, apart := rules["siblings"], 0
	for _, folder := range known {
		switch {
		case filepath.Dir(folder) != "remediations" || slices.Contains([]string{"remediations/engine", "remediations/providertest", "remediations/scene"}, folder):
			continue
		case !siblings.covers(folder):
			strict := func(b border) bool { return b.ListMode == "strict" && b.covers(folder) }
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(rules)), strict), "%s is no sibling, and nothing says what it may import alone", folder)
			continue
		}
		apart++
		require.True(t, siblings.denies(folder), "siblings may import %s", folder)
		for _, rule := range []string{"engine", "settings", "config"} {
			require.True(t, rules[rule].denies(folder), "%s may import %s", rule, folder)
		}
		of, own := folder+"/settings", rules[filepath.Base(folder)+"Settings"]
		if !slices.Contains(known, of) || siblings.denies(of) {
			continue
		}
		for _, sibling := range known {
			if sibling != folder && siblings.denies(sibling) && filepath.Dir(sibling) == "remediations" {
				require.True(t, own.covers(sibling) && own.denies(of), "%s may import %s", sibling, of)
			}
		}
	}
	require.GreaterOrEqual(t, apart, 13)
}
