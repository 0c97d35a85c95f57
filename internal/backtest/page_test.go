package backtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestATimelineThatIsCutSaysSo: the page has the first nodes by name, and says how many there are.
func TestATimelineThatIsCutSaysSo(t *testing.T) {
	t.Parallel()
	const said = "The timeline shows the first 100 of 101 nodes, by name."
	for nodes, cut := range map[int]bool{100: false, 101: true} {
		r := &Report{From: midnight, Until: at(24, 0), Runs: []Answer{{}, {Curing: true}}}
		for i := range nodes {
			r.Runs[0].Repairs = append(r.Runs[0].Repairs, &Repair{
				Fault: Fault{Node: fmt.Sprintf("n%03d", i)}, Recorded: at(1, 0), Over: at(2, 0), Steps: []Step{{Name: "reboot", At: at(1, 0)}},
			})
		}
		var html strings.Builder
		require.NoError(t, r.Page().HTML(&html))
		require.Equal(t, cut, strings.Contains(html.String(), said), "%d nodes", nodes)
		shown := r.timeline().Timeline.Lanes
		require.Len(t, shown, 100)
		require.Equal(t, "n099", shown[99].Name)
	}
}
