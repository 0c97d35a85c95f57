package remediations_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "drydock.dev/drydock/"

// room is a row of the table in docs/contributing/architecture.md: some folders, and the folders of
// Drydock that they import.
type room struct {
	folders, imports []string
	all              bool
}

// rooms returns the rows of the table.
func rooms(t *testing.T) (out []room) {
	t.Helper()
	text, err := os.ReadFile("../docs/contributing/architecture.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| folder | what lives there | what of Drydock it imports |\n|---|---|---|\n")
	require.True(t, found, "docs/contributing/architecture.md has the table")
	table, _, _ = strings.Cut(table, "\n\n")
	word := regexp.MustCompile("`([^`]+)`")
	named := func(cell string) (out []string) {
		for _, m := range word.FindAllStringSubmatch(cell, -1) {
			name := m[1]
			if matches, _ := filepath.Glob(name); len(matches) > 0 { // the name is relative to remediations, the folder of this test
				name = "remediations/" + name
			}
			matches, err := filepath.Glob("../" + name)
			require.NoError(t, err)
			require.NotEmpty(t, matches, "docs/contributing/architecture.md names %s, which is not there", name)
			out = append(out, name)
		}
		return out
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		require.Len(t, cells, 3, line)
		of := room{folders: named(cells[0]), imports: named(cells[2]), all: strings.TrimSpace(cells[2]) == "all"}
		require.True(t, of.all || len(of.imports) > 0 || strings.TrimSpace(cells[2]) == "none", line)
		out = append(out, of)
	}
	return out
}

// suits returns how closely a name of the table fits the folder, or zero if it does not fit. A name
// fits its own folder and all folders below it, and may have a star for one folder. A longer name
// fits more closely. The name "remediations" fits only its own folder.
func suits(name, folder string) (closeness int) {
	if name == "remediations" && folder != name {
		return 0
	}
	parts := strings.Split(folder, "/")
	n := strings.Count(name, "/") + 1
	if len(parts) < n {
		return 0
	}
	if ok, _ := path.Match(name, strings.Join(parts[:n], "/")); !ok {
		return 0
	}
	return 2*n - strings.Count(name, "*")
}

// imported returns the folders of Drydock that each folder of the product imports, without its
// tests.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != ".." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(file))
		if err != nil {
			return err
		}
		if found[folder] == nil {
			found[folder] = map[string]bool{}
		}
		for _, i := range parsed.Imports {
			whole, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if of, ours := strings.CutPrefix(whole+"/", module); ours {
				found[folder][strings.TrimSuffix(of, "/")] = true
			}
		}
		return nil
	}))
	out := map[string][]string{}
	for folder, of := range found {
		out[folder] = slices.Sorted(maps.Keys(of))
	}
	return out
}

// misfits returns a message for each folder whose imports differ from the table.
func misfits(rooms []room, imported map[string][]string) (out []string) {
	used := map[string]bool{}
	for _, folder := range slices.Sorted(maps.Keys(imported)) {
		var of *room
		var at, closest = "", 0
		for i := range rooms {
			for _, name := range rooms[i].folders {
				if c := suits(name, folder); c > closest {
					of, at, closest = &rooms[i], name, c
				}
			}
		}
		if of == nil {
			out = append(out, folder+" has no row: say what lives there, and what it imports")
			continue
		}
		own := strings.Join(strings.Split(folder, "/")[:strings.Count(at, "/")+1], "/")
		for _, i := range imported[folder] {
			allowed := of.all || i == own || own != "remediations" && strings.HasPrefix(i, own+"/")
			for _, name := range of.imports {
				if ok, _ := path.Match(name, i); ok {
					allowed, used[at+" "+name] = true, true
				}
			}
			if !allowed {
				out = append(out, folder+" imports "+i+", which is not in its row")
			}
		}
	}
	for _, r := range rooms {
		for _, name := range r.imports {
			if !slices.ContainsFunc(r.folders, func(of string) bool { return used[of+" "+name] }) {
				out = append(out, "the row of "+r.folders[0]+" has "+name+", which nothing there imports")
			}
		}
	}
	return out
}

// TestTheHouseFollowsItsTable: each folder imports exactly the folders of Drydock in its row of
// the table in docs/contributing/architecture.md. So no provider knows another, the engine knows no
// provider, and test helpers stay in tests.
func TestTheHouseFollowsItsTable(t *testing.T) {
	table, code := rooms(t), imported(t)
	require.Empty(t, misfits(table, code))

	// The controls.
	also := func(folder, imports string) map[string][]string {
		other := maps.Clone(code)
		other[folder] = append(slices.Clone(other[folder]), imports)
		return other
	}
	for folder, imports := range map[string]string{
		"remediations":                         "remediations/engine",
		"remediations/engine":                  "remediations/providers/civo",
		"remediations/providers/civo":          "remediations/providers/redfish",
		"remediations/providers/hosts":         "remediations/providers/kilo/settings",
		"remediations/providers/civo/settings": "remediations/providers/civo",
		"internal/config":                      "remediations/providers/civo",
		"internal/text":                        "remediations",
		"remediations/kube":                    "remediations/testing/scene",
		"receiver":                             "webhook",
		"remediations/elsewhere":               "internal/text",
	} {
		require.Len(t, misfits(table, also(folder, imports)), 1, "%s imports %s", folder, imports)
	}
	delete(code, "internal/actions")
	require.NotEmpty(t, misfits(table, code), "a row that says more than the code")
}
