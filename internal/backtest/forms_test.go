package backtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/internal/report/reporttest"
	"drydock.dev/drydock/remediations"
)

// TestTheReportSaysTheSameInEachForm: each cell, figure and sentence of the text is that of the
// HTML, and each cell and figure says what the JSON says. The same data gives the same bytes.
func TestTheReportSaysTheSameInEachForm(t *testing.T) {
	t.Parallel()
	p := day()
	p.at(at(21, 0)).Gap = &history.Gap{Until: at(22, 0), Why: "kube-state-metrics was down"}
	other := strings.Replace(dayConfig, "attempts: 2", "attempts: 1", 1)
	made := func() (*Report, string, string, string) {
		r, err := Backtest(t.Context(), given(p.moments()), midnight, at(24, 0),
			Named{"first.yaml", optionsOf(t, dayConfig)}, Named{"second.yaml", optionsOf(t, other)})
		require.NoError(t, err)
		var text, html, data bytes.Buffer
		require.NoError(t, r.Page().Text(&text))
		require.NoError(t, r.Page().HTML(&html))
		require.NoError(t, r.JSON(&data))
		return r, text.String(), html.String(), data.String()
	}
	r, text, html, data := made()
	require.Len(t, r.Runs, 4)
	require.Equal(t, 2, r.Runs[0].Totals.Acted)
	require.Equal(t, 1, r.Runs[0].Totals.Unnecessary)
	require.Equal(t, 5+8+1, r.Runs[0].Totals.OnlyHeld, "the node that flaps, the storm, and the one outside of the window")
	require.Equal(t, 1, r.Runs[1].Totals.Shortened)
	require.Len(t, r.Differences, 1)
	require.Equal(t, "n02", r.Differences[0].Node)
	require.Len(t, r.Differences[0].First, 2)
	require.Len(t, r.Differences[0].Second, 1)
	require.Len(t, r.Gaps, 1)

	for _, run := range r.Runs {
		total := map[Hold]Seconds{}
		for _, h := range run.HeldNodes {
			total[h.Hold] += Seconds(h.Until.Sub(h.From))
		}
		for _, h := range run.Holds {
			require.Equal(t, h.Total, total[h.Hold], "one by one, the holds last as long as in all")
		}
	}

	said := reporttest.Same(t, text, html)
	var parsed Report
	require.NoError(t, json.Unmarshal([]byte(data), &parsed))
	tables := map[string][][]string{}
	for _, run := range parsed.Runs {
		saysWhatTheAnswerSays(t, run, said, tables)
	}
	first, cured := parsed.Runs[0], parsed.Runs[1]
	require.Equal(t, map[string]string{
		"repairs, as it went": strconv.Itoa(first.Totals.Acted), "unnecessary": strconv.Itoa(first.Totals.Unnecessary),
		"outages shortened, if steps cure": strconv.Itoa(cured.Totals.Shortened), "shorter in total, if steps cure": lasting(cured.Totals.Saved),
		"breaker openings": strconv.Itoa(len(first.Openings)), "most repairs at once": strconv.Itoa(first.Totals.MostAtOnce),
	}, said.Figures)
	for _, g := range parsed.Gaps {
		tables["Gaps"] = append(tables["Gaps"], []string{instant(g.From), instant(g.Until), g.Why})
	}
	for _, s := range parsed.Skipped {
		tables["Not read"] = append(tables["Not read"], []string{s.What, instant(s.From), instant(s.Until), s.Why})
	}
	const otherwise = "What the second configuration would have done differently"
	for _, d := range parsed.Differences {
		tables[otherwise] = append(tables[otherwise], []string{d.Node, d.Alert, instant(d.Began), issued(d.First), issued(d.Second)})
	}
	for title := range said.Tables {
		require.Equal(t, tables[title], said.Rows(title), title)
		delete(tables, title)
	}
	require.Empty(t, tables, "tables of which the page has nothing")
	require.Subset(t, said.Lines, parsed.Assumptions)
	for _, about := range []string{"kube-state-metrics was down", "block 01J", "Policies that observe are replayed as if they enforced."} {
		require.Contains(t, text, about)
	}

	_, again, againHTML, againData := made()
	require.Equal(t, text, again)
	require.Equal(t, html, againHTML)
	require.Equal(t, data, againData)
}

// saysWhatTheAnswerSays adds the tables that the page must have of the answer.
func saysWhatTheAnswerSays(t *testing.T, a Answer, said reporttest.Said, tables map[string][][]string) {
	t.Helper()
	how := ", " + a.Config + ", as it went"
	if a.Curing {
		how = ", " + a.Config + ", as if each step had cured"
	}
	add := func(title string, row ...string) {
		for i := range row {
			if row[i] == "" {
				row[i] = "-"
			}
		}
		tables[title+how] = append(tables[title+how], row)
	}
	for _, s := range a.ByStep {
		add("Steps", s.Policy, s.Step, strconv.Itoa(s.Issued))
	}
	acted, unnecessary, exhausted := 0, 0, 0
	for _, one := range a.Repairs {
		if one.Outcome == remediations.OutcomeExhausted {
			exhausted++
		}
		if len(one.Steps) == 0 {
			continue
		}
		outcome, verdict := string(one.Outcome), ""
		if outcome == "" {
			outcome = "under way"
		}
		acted++
		switch {
		case one.Unnecessary:
			unnecessary++
			verdict = "unnecessary"
		case one.AtLeast:
			verdict = "shorter by at least " + lasting(one.Saved)
		case one.Saved >= Seconds(time.Minute):
			verdict = "shorter by " + lasting(one.Saved)
		}
		add("Repairs", one.ID, one.Node, one.Policy, instant(one.Began), instant(one.Ended), issued(one.Steps), outcome, verdict)
	}
	require.Equal(t, []int{acted, unnecessary, exhausted}, []int{a.Totals.Acted, a.Totals.Unnecessary, a.Totals.Exhausted})
	for _, h := range a.Holds {
		add("Holds", h.Policy, string(h.Reason), strconv.Itoa(h.Times), strconv.Itoa(h.Nodes), lasting(h.Total), lasting(h.Longest))
	}
	for _, o := range a.Openings {
		took := ""
		if !o.Until.IsZero() {
			took = report.Duration(o.Until.Sub(o.From))
		}
		add("Breakers", o.Scope, instant(o.From), instant(o.Until), took)
	}
	for _, again := range a.Again {
		add("Repaired again", again.Node, strconv.Itoa(again.Times))
	}
	if len(a.ByStep) > 0 {
		const lead = "Repairs: %d (%d unnecessary, %d exhausted). Faults that were held and got no step: %d. Most repairs at the same time: %d."
		require.Contains(t, said.Lines, fmt.Sprintf(lead,
			acted, unnecessary, exhausted, a.Totals.OnlyHeld, a.Totals.MostAtOnce))
	}
}

func lasting(s Seconds) string { return report.Duration(time.Duration(s)) }

func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func issued(steps []Step) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.Name+" "+s.At.UTC().Format(time.DateTime))
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
