package remediations

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rulesTest = regexp.MustCompile("`(rules/tests/\\w+\\.yaml)`")

// TestCivoRequirements: each of what Civo's node-agent set out to do has, on the page for its users, a test that exists.
func TestCivoRequirements(t *testing.T) { requirementsAreShown(t, "../docs/civo.md", "S3") }

// TestSidecarRequirements: the same of what Sei's controller set out to do.
func TestSidecarRequirements(t *testing.T) { requirementsAreShown(t, "../docs/sidecars.md", "S0") }

// requirementsAreShown: each of a system's sixteen requirements has a row on the page, with tests that exist.
func requirementsAreShown(t *testing.T, file, system string) {
	t.Helper()
	all := testsOfTheRepository(t)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(b)
	require.Less(t, strings.Count(page, "\n"), 200, "people read short pages")
	for _, name := range testName.FindAllString(page, -1) {
		require.True(t, all[name], "%s is no test", name)
	}
	for i := 1; i <= 16; i++ {
		id := fmt.Sprintf("%s-%d", system, i)
		t.Run(id, func(t *testing.T) {
			_, row, ok := strings.Cut(page, "\n| "+id+" |")
			require.True(t, ok, "no row")
			row, _, _ = strings.Cut(row, "\n")
			require.NotEmpty(t, testName.FindAllString(row, -1), "no test")
			for _, m := range rulesTest.FindAllStringSubmatch(row, -1) {
				text, err := os.ReadFile("../" + m[1])
				require.NoError(t, err)
				require.Contains(t, string(text), "- name: "+id+" ", "no case of %s is named after it", m[1])
			}
		})
	}
}
