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

// testsOfTheRepository returns the names of all tests in the repository.
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

const promisesPage = "../docs/contributing/promises.md"

// TestInvariantsNameTestsThatExist: the package documentation and the developers' page have all
// eleven rules, each with names of tests that exist. The page for users has the same eleven rules
// as promises.
func TestInvariantsNameTestsThatExist(t *testing.T) {
	all := testsOfTheRepository(t)
	require.True(t, all["TestInvariantsNameTestsThatExist"], "the control")
	users, err := os.ReadFile("../docs/reference/safety.md")
	require.NoError(t, err)
	for file, heading := range map[string]string{"doc.go": "//  %d. ", promisesPage: "## %d. "} {
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
				promise, _, _ := strings.Cut(part, "\n")
				part, _, _ = strings.Cut(part, fmt.Sprintf(heading, i+1))
				part, _, _ = strings.Cut(part, "\n## ")
				require.NotEmpty(t, testName.FindAllString(part, -1), "invariant %d", i)
				if file == promisesPage {
					require.Contains(t, string(users), "\n"+fmt.Sprintf(heading, i)+promise+"\n", "the page for users has it")
				}
			}
		})
	}
}

// whoCan returns the rows of the first table in the chapter of the page, by the name in bold.
func whoCan(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "## Who can make Drydock act\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	_, table, found = strings.Cut(table, "|---")
	require.True(t, found)
	_, table, _ = strings.Cut(table, "\n")
	rows := map[string][]string{}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) == 1 {
			break
		}
		for _, cell := range cells {
			require.NotEmpty(t, strings.TrimSpace(cell), row)
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

// TestWhoCanMakeDrydockActNamesItsTests: each row of docs/reference/security.md has a row with
// tests on the developers' page.
func TestWhoCanMakeDrydockActNamesItsTests(t *testing.T) {
	rows, tests := whoCan(t, "../docs/reference/security.md"), whoCan(t, promisesPage)
	require.Len(t, tests, len(rows))
	bold, who := regexp.MustCompile(`\*\*[^|]+\*\*`), map[string]bool{}
	for row, cells := range rows {
		require.Len(t, cells, 2, row)
		require.NotEmpty(t, tests[row], "no test tries: %s", row)
		require.NotEmpty(t, testName.FindAllString(tests[row][0], -1), "no test tries: %s", row)
		who[bold.FindString(row)] = true
	}
	for _, identity := range []string{
		"**PrometheusRule**", "**ServiceMonitor** or **PodMonitor**", "**Alertmanager's API**", "**receiver without the token**", "**receiver's token**", "**kubelet**",
		"**patch nodes**", "**`<release>-operator`**", "**agent**", "**ledger**", "**Drydock's namespace**",
	} {
		require.True(t, who[identity], "%s has no line", identity)
	}
}

// TestPagesForUsersNameNoTests: only developers need to know which test shows what.
func TestPagesForUsersNameNoTests(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	deeper, err := filepath.Glob("../docs/*/*.md")
	require.NoError(t, err)
	developers := 0
	for _, page := range append(pages, deeper...) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		named := testName.FindAllString(string(text), -1)
		if strings.Contains(page, "/contributing/") {
			developers += len(named)
			continue
		}
		require.Empty(t, named, page)
	}
	require.Positive(t, developers, "the control")
}

// TestArchitectureNamesWhatThereIs: each file that docs/contributing/architecture.md names exists
// and has the function or type that the page names with it.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	page, err := os.ReadFile("../docs/contributing/architecture.md")
	require.NoError(t, err)
	cited := regexp.MustCompile("`([a-z_]+(?:/[A-Za-z_*.]+)+)`(?:\\s+`(\\w+)`)?").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(cited), 20, "the control")
	named := 0
	for _, m := range cited {
		files, err := filepath.Glob("../" + strings.TrimSuffix(m[1], "/"))
		require.NoError(t, err)
		if len(files) == 0 { // the page's table names folders relative to remediations, the folder of this test
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
