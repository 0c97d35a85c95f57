package remediations_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var testName = regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`)

// testsOfTheRepository are all tests that there are, by name.
func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	declared, all := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w+)\(`), map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = true
		}
		return err
	}))
	return all
}

// TestInvariantsNameTestsThatExist: the package documentation and docs/reference/safety.md have all eleven, each with tests, and
// no test that is not there.
func TestInvariantsNameTestsThatExist(t *testing.T) {
	all := testsOfTheRepository(t)
	require.True(t, all["TestInvariantsNameTestsThatExist"], "the control")
	for file, heading := range map[string]string{"doc.go": "//  %d. ", "../docs/reference/safety.md": "## %d. "} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			text := string(b)
			for _, name := range testName.FindAllString(text, -1) {
				require.True(t, all[name], "%s is no test", name)
			}
			for i := 1; i <= 11; i++ {
				_, part, ok := strings.Cut(text, fmt.Sprintf(heading, i))
				require.True(t, ok, "invariant %d", i)
				part, _, _ = strings.Cut(part, fmt.Sprintf(heading, i+1))
				part, _, _ = strings.Cut(part, "\n## ")
				require.NotEmpty(t, testName.FindAllString(part, -1), "invariant %d", i)
			}
		})
	}
}

// TestWhoCanMakeDrydockActNamesItsTests: docs/reference/security.md names no test that is not there, and each line of its first table has some.
func TestWhoCanMakeDrydockActNamesItsTests(t *testing.T) {
	all := testsOfTheRepository(t)
	page, err := os.ReadFile("../docs/reference/security.md")
	require.NoError(t, err)
	for _, name := range testName.FindAllString(string(page), -1) {
		require.True(t, all[name], "%s is no test", name)
	}
	_, table, found := strings.Cut(string(page), "## Who can make Drydock act\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	_, table, found = strings.Cut(table, "|---|---|---|---|\n")
	require.True(t, found)
	who := map[string]bool{}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) == 1 {
			break
		}
		require.Len(t, cells, 6, row)
		for _, cell := range cells[1:4] {
			require.NotEmpty(t, strings.TrimSpace(cell), row)
		}
		require.NotEmpty(t, testName.FindAllString(cells[4], -1), "no test tries: %s", row)
		who[regexp.MustCompile(`\*\*[^|]+\*\*`).FindString(cells[1])] = true
	}
	for _, identity := range []string{
		"**PrometheusRule**", "**ServiceMonitor** or **PodMonitor**", "**Alertmanager's API**", "**receiver without the token**", "**receiver's token**", "**kubelet**",
		"**patch nodes**", "**`<release>-operator`**", "**agent**", "**ledger**", "**Drydock's namespace**",
	} {
		require.True(t, who[identity], "%s has no line", identity)
	}
}

// TestArchitectureNamesWhatThereIs: each file that docs/contributing/architecture.md names is there, with the function or type behind its name.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	page, err := os.ReadFile("../docs/contributing/architecture.md")
	require.NoError(t, err)
	cited := regexp.MustCompile("`([a-z_]+(?:/[A-Za-z_*.]+)+)`(?:\\s+`(\\w+)`)?").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(cited), 20, "the control")
	named := 0
	for _, m := range cited {
		files, err := filepath.Glob("../" + strings.TrimSuffix(m[1], "/"))
		require.NoError(t, err)
		if len(files) == 0 { // the table of the house names folders as seen from remediations, where this test stands
			files, err = filepath.Glob(strings.TrimSuffix(m[1], "/"))
			require.NoError(t, err)
		}
		require.NotEmpty(t, files, "%s is not there", m[1])
		if m[2] == "" || !strings.HasSuffix(m[1], ".go") {
			continue
		}
		named++
		text, err := os.ReadFile(files[0])
		require.NoError(t, err)
		declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |var )` + m[2] + `\b`)
		require.Regexp(t, declared, string(text), "%s has no %s", m[1], m[2])
	}
	require.Greater(t, named, 10, "the control")
}
