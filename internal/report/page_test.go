package report_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/internal/report"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestDurationIsExactToTheSecond(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 999 * time.Millisecond: "0s", 372 * time.Second: "6m12s", time.Hour: "1h", 51*time.Hour + time.Second: "2d3h1s",
		7 * 24 * time.Hour: "7d", -time.Minute: "-1m",
	} {
		require.Equal(t, want, Duration(d))
	}
}

// framed is a page with one of everything.
func framed() *Page {
	week := 7 * 24 * time.Hour
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	var spans []Span
	for i, m := range Marks {
		from := ago(week - time.Duration(i)*18*time.Hour)
		spans = append(spans, Span{From: from, To: from.Add(5 * time.Hour), Mark: m, Word: string(m), Ref: "7", Title: "a span that is " + string(m), Ticks: []time.Time{from.Add(time.Hour)}})
	}
	return &Page{
		Title: "A report", From: ago(week), To: noon, Made: noon,
		Summary: "In this week two repairs ended on node-1 and on node-2, and this sentence goes on until it is longer than a line of a terminal is.",
		Figures: []Figure{{"2", "repairs"}, {"6m12s", "median time to repair"}},
		Sections: []Section{
			{Title: "By policy", Lead: "A sentence about it.", Table: &Table{
				Columns: []Column{{Name: "policy"}, {Name: "repairs", Number: true}, {Name: "why", Long: true}},
				Rows:    [][]string{{"node-not-ready", "2", "it was not Ready"}, {"node-disk-pressure", "", ""}},
			}},
			{Title: "By node", Table: &Table{Columns: []Column{{Name: "node"}}, Empty: "No node had a repair."}},
			{Title: "Timeline", Lead: "Each number is a row of the table.", Timeline: &Timeline{From: ago(week), To: noon, Lanes: []Lane{
				{Name: "node-1", Spans: spans},
				{Name: "a-node-whose-name-is-much-longer-than-its-column", Spans: []Span{
					{From: ago(2 * week), To: ago(6 * 24 * time.Hour), Mark: MarkGood, Word: "good", Ref: "1", Title: "began before"},
					{From: ago(3 * time.Hour), To: ago(2 * time.Hour), Mark: MarkGood, Word: "good", Ref: "2", Title: "two at one place"},
					{From: ago(2 * time.Hour), To: ago(2 * time.Hour), Mark: MarkBad, Word: "bad", Ref: "3", Title: "two at one place"},
				}},
			}}},
			{Title: "What the data does not say", List: []string{"One thing.", "Another."}},
		},
	}
}

func TestThePagesFrame(t *testing.T) {
	t.Parallel()
	var text, html bytes.Buffer
	require.NoError(t, framed().Text(&text))
	golden(t, "frame.txt", text.String())
	require.NoError(t, framed().HTML(&html))
	golden(t, "frame.html", html.String())
}

// TestAPageIsWholeByItself: a mail program or a browser without a network shows it.
func TestAPageIsWholeByItself(t *testing.T) {
	t.Parallel()
	var html bytes.Buffer
	require.NoError(t, framed().HTML(&html))
	for _, needs := range []string{"<script", "http://", "https://", "src=", "@import", "<link", "url(h", "ZgotmplZ"} {
		require.NotContains(t, html.String(), needs)
	}
	require.Contains(t, html.String(), "prefers-color-scheme: dark")
	require.Contains(t, html.String(), "@media print")
}
