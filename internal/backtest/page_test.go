package backtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/report"
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

// TestTheReportNamesTheTimesOfAlerts: an alert begins some minutes after its fault. A step is
// decided, and nothing is done.
func TestTheReportNamesTheTimesOfAlerts(t *testing.T) {
	t.Parallel()
	columns := func(s report.Section) (out []string) {
		for _, c := range s.Table.Columns {
			out = append(out, c.Name)
		}
		return out
	}
	r := &Report{Runs: []Answer{{}, {Curing: true}, {}}}
	r.Runs[0].Repairs = []*Repair{{Fault: Fault{Node: "n", Began: at(1, 0), Ended: at(2, 0)}, Recorded: at(1, 5), Steps: []Step{{Name: "reboot", At: at(1, 10)}}}}
	for _, s := range r.Runs[0].sections("as it went") {
		if s.Title == "Repairs, as it went" {
			require.Equal(t, []string{"repair", "node", "policy", "alert began", "alert ended", "steps decided", "outcome", "verdict"}, columns(s))
			require.Equal(t, []string{report.Stamp(at(1, 0)), report.Stamp(at(2, 0))}, s.Table.Rows[0][3:5])
		}
	}
	require.Equal(t, []string{"node", "alert", "alert began"}, columns(r.comparison())[:3])
}
