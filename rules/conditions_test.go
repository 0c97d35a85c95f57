package rules_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// TestConditionsOfOthersAreTheSameInRulesPoliciesAndDocs: a condition that only the rule has can
// never be witnessed, and one that only the witness has never fires.
func TestConditionsOfOthersAreTheSameInRulesPoliciesAndDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/other-systems.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "## The conditions that are alerts\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[string][]string{} // condition=status by alert
	cells := regexp.MustCompile("(?m)^\\| (`.+`) \\| (True|False) \\| [^|]+ \\| \\[?(\\w+)[^|]* \\| [^|]+ \\|$")
	for _, row := range cells.FindAllStringSubmatch(table, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			documented[row[3]] = append(documented[row[3]], strings.Trim(name, "`")+"="+row[2])
		}
	}
	require.Len(t, documented, 5)

	all := shipped(t)
	selector := regexp.MustCompile(`min_over_time\(kube_node_status_condition\{[^}]*condition=~?"([^"]+)",status="(true|false)"`)
	for alert, want := range documented {
		r, ok := all[alert]
		require.True(t, ok, "%s is no rule", alert)
		m := selector.FindStringSubmatch(r.Expr)
		require.NotNil(t, m, alert)
		status := map[string]string{"true": "True", "false": "False"}[m[2]]
		var fires []string
		for _, name := range strings.Split(m[1], "|") {
			fires = append(fires, name+"="+status)
		}
		require.ElementsMatch(t, want, fires, alert)
		takers := 0
		for _, p := range config.Shipped().Policies {
			if !slices.Contains(matched([]config.PolicyInfo{p}), r.Labels["remediation"]) {
				continue
			}
			takers++
			var sees []string
			for _, s := range p.Witness.Signs {
				require.Equal(t, signs.Condition, s.Kind)
				sees = append(sees, s.Name+"="+s.Status)
			}
			require.ElementsMatch(t, want, sees, p.Name)
			require.Equal(t, remediations.ModeObserve, p.Mode, p.Name)
		}
		require.Positive(t, takers, alert)
	}
}
