package remediations_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rulesTest = regexp.MustCompile("`(rules/tests/\\w+\\.yaml)`")

const requirementsPage = "../docs/contributing/requirements.md"

// TestCivoRequirements: the developers' page names an existing test for each requirement of Civo's
// node-agent. The tests that the page for users names exist as well.
func TestCivoRequirements(t *testing.T) {
	requirementsAreShown(t, "../docs/providers/civo.md", "S3", upTo(16)...)
}

// TestSidecarRequirements: the developers' page names an existing test for each requirement of
// Sei's controller.
func TestSidecarRequirements(t *testing.T) {
	requirementsAreShown(t, "../docs/special/sidecars.md", "S0", upTo(16)...)
}

// TestHostRequirements: the developers' page names an existing test for each requirement of
// thecloud's self-healing.
func TestHostRequirements(t *testing.T) {
	requirementsAreShown(t, "../docs/providers/ssh.md", "S1", upTo(17)...)
}

// TestMeshRequirements: the developers' page names an existing test for each requirement of a mesh
// of locations. It leaves out requirements about Kilo itself, its later versions, and the place
// where the fault was first found.
func TestMeshRequirements(t *testing.T) {
	requirementsAreShown(t, "../docs/special/kilo.md", "S2", 1, 2, 3, 6, 7, 8, 9, 10, 12)
}

func upTo(last int) (all []int) {
	for i := range last {
		all = append(all, i+1)
	}
	return all
}

// requirementsAreShown checks that each requirement of the system has a row on the page, with the
// names of existing tests.
func requirementsAreShown(t *testing.T, file, system string, numbers ...int) {
	t.Helper()
	all := testsOfTheRepository(t)
	page := ""
	for _, file := range []string{file, requirementsPage} {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		page = string(b)
		require.Less(t, strings.Count(page, "\n"), 200, "people read short pages")
		for _, name := range testName.FindAllString(page, -1) {
			require.True(t, all[name], "%s is no test", name)
		}
		require.Equal(t, file == requirementsPage, strings.Contains(page, "| "+system+"-"), "the numbers are for developers")
	}
	for _, i := range numbers {
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
