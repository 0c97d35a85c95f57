package report_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	. "drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/internal/report/reporttest"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestTheNumbersAreTheSameInAllForms: each table of the text is that of the HTML, cell by cell, and
// the numbers are those of the JSON.
func TestTheNumbersAreTheSameInAllForms(t *testing.T) {
	t.Parallel()
	for _, series := range []*Series{nil, measured()} {
		in := rich()
		in.Series = series
		x, data, page := forms(t, New(in))
		said := reporttest.Same(t, x, page)
		of := said.Tables

		var r Report
		require.NoError(t, json.Unmarshal([]byte(data), &r))
		number := func(s string) int {
			if s == "-" || s == "" {
				return 0
			}
			n, err := strconv.Atoi(s)
			require.NoError(t, err)
			return n
		}
		groups := map[string][]Group{"By policy": append(r.Policies, r.Total), "By node": r.ByNode}
		for title, all := range groups {
			rows := of[title]
			require.Len(t, rows, len(all)+1, title)
			for i, g := range all {
				cells := map[string]string{}
				for j, name := range rows[0] {
					cells[name] = rows[i+1][j]
				}
				if g.Name != "" {
					require.Equal(t, g.Name, rows[i+1][0])
				}
				for name, want := range map[string]int{"repairs": g.Repairs, "at once": g.AtOnce, "would be": g.WouldBe, "would be at once": g.WouldAtOnce, "by itself": g.ByItself, "on record": g.UnderWay} {
					if strings.HasSuffix(name, "at once") && title == "By node" {
						continue // of one node nearly always 1, and only in JSON
					}
					require.Equal(t, want, number(cells[name]), "%s of %s", name, g.Name)
				}
				for name, want := range map[string]*int64{"median": g.MedianSeconds, "worst": g.WorstSeconds} {
					if want == nil {
						require.Equal(t, "-", cells[name])
					} else {
						require.Equal(t, Duration(time.Duration(*want)*time.Second), cells[name])
					}
				}
				people := map[string]int{"requested": g.Requested, "cancelled": g.Cancelled, "must look": g.NeedPerson}
				for name, counts := range map[string]map[string]int{"outcomes": g.Outcomes, "steps": g.Steps, "would-be steps": g.WouldSteps, "people": people} {
					var want []string
					for one, n := range counts {
						if n > 0 {
							want = append(want, one+" "+strconv.Itoa(n))
						}
					}
					if len(want) == 0 {
						want = []string{"-"}
					}
					require.ElementsMatch(t, want, strings.Split(cells[name], ", "), "%s of %s", name, g.Name)
				}
			}
		}
		dash := func(s string) string {
			if s == "" {
				return "-"
			}
			return s
		}
		equal := func(title string, rows ...map[string]string) {
			require.Len(t, of[title], len(rows)+1, title)
			for i, want := range rows {
				for j, name := range of[title][0] {
					require.Contains(t, want, name, title)
					require.Equal(t, dash(want[name]), of[title][i+1][j], "%s, row %d, %s", title, i, name)
				}
			}
		}
		long := func(seconds int64) string { return Duration(time.Duration(seconds) * time.Second) }
		var repairs, holds, breakers []map[string]string
		for _, one := range r.Repairs {
			steps := strings.Join(one.Steps.Texts(), ", ")
			if one.Would != (remediations.Attempt{}) {
				steps = "would " + one.Would.String()
			}
			outcome := string(one.Outcome)
			switch {
			case one.Outcome == remediations.OutcomeObserved && one.ByItself:
				outcome += ", healthy by itself"
			case one.ByPerson:
				outcome += " by a person"
			case one.NeedsPerson:
				outcome = "Exhausted, needs a person"
			case outcome == "":
				outcome = string(one.Phase) + " now"
			}
			repairs = append(repairs, map[string]string{
				"#": strconv.Itoa(one.Number), "node": one.Node, "target": one.Target, "policy": one.Policy, "began": Stamp(one.Began),
				"took": long(one.Seconds), "steps": steps, "outcome": outcome, "request": one.Request, "why": one.Why,
			})
		}
		for _, h := range r.Holds {
			holds = append(holds, map[string]string{
				"policy": h.Policy, "reason": string(h.Reason), "held": long(h.Seconds), "most": strconv.Itoa(h.Most), "from": h.Source,
			})
		}
		for _, b := range r.Breakers {
			breakers = append(breakers, map[string]string{
				"breaker": b.Scope, "openings": strconv.Itoa(b.Openings), "open for": long(b.Seconds), "now": string(b.State), "from": b.Source,
			})
		}
		equal("Repairs", repairs...)
		equal("Holds", holds...)
		equal("Breakers", breakers...)
		require.Equal(t, map[string]string{
			"repairs that ended": strconv.Itoa(r.Total.Repairs), "recovered": strconv.Itoa(r.Total.Outcomes["Recovered"]),
			"median time to repair": long(*r.Total.MedianSeconds), "worst time to repair": long(*r.Total.WorstSeconds),
			"would have been repaired": strconv.Itoa(r.Total.WouldBe), "recovered by itself": strconv.Itoa(r.Total.ByItself),
			"need a person now": strconv.Itoa(r.Total.NeedPerson),
		}, said.Figures)
		require.Subset(t, said.Lines, r.Unsaid)
	}
}

// TestWhatPrometheusMeasured: an hour, a gap of an hour, two openings.
func TestWhatPrometheusMeasured(t *testing.T) {
	t.Parallel()
	in := rich()
	in.Series = measured()
	r := New(in)
	require.Equal(t, []Hold{
		{Policy: "node-disk-pressure", Reason: remediations.ReasonSilenced, Seconds: 36000, Most: 1, Source: SourcePrometheus},
		{Policy: "node-not-ready", Reason: remediations.ReasonAtLimit, Seconds: 3840, Most: 3, Source: SourcePrometheus},
	}, r.Holds)
	require.Len(t, r.Breakers, 2)
	require.Equal(t, SourceLedger, r.Breakers[0].Source, "Prometheus has not seen it yet")
	require.Equal(t, 2, r.Breakers[1].Openings)
	require.EqualValues(t, 4200, r.Breakers[1].Seconds)
	require.Equal(t, ledger.BreakerClosed, r.Breakers[1].State, "as the ledger says")
	most := 2
	require.Equal(t, &Measured{StepSeconds: 60, MissingSeconds: 59 * 60, InFlight: &most}, r.Measured)
}

// TestTextOfOthersIsHarmless by a browser or a terminal, wherever they stand in the cluster.
func TestTextOfOthersIsHarmless(t *testing.T) {
	t.Parallel()
	const hostile = "</title></svg><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[2J\u202egnp.exe\u2066\x00{{.}}&lt;"
	e := entry("aaaaaa", remediations.OutcomeRecovered, time.Hour, time.Minute, hostile)
	e.ID, e.Policy, e.Pod, e.Target, e.Request, e.Why = hostile, hostile, hostile, "sidecar-1a2b", hostile, hostile
	w := observed("bbbbbb", time.Hour, 0)
	w.Would.Step = remediations.AttemptOf(hostile)
	held := record("cccccc", remediations.PhasePending, time.Minute, remediations.ReasonSilenced)
	held.Hold.Message = hostile
	in := Input{
		From: ago(week), To: noon, Of: hostile, LedgerProblem: hostile, SeriesProblem: hostile,
		Nodes: []Node{node(hostile, e, w), under(node("n"), held), {Name: hostile, Annotations: map[string]string{remediations.HistoryKey: hostile}}},
	}
	r := New(in)
	x, data, page := forms(t, r)
	for _, form := range []string{x, data, page} {
		for _, c := range form {
			require.True(t, text.Shows(c) || c == '\n', "%q", c)
		}
	}
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			require.NotContains(t, []string{"script", "img"}, n.Data)
			for _, a := range n.Attr {
				require.False(t, strings.HasPrefix(a.Key, "on"), a.Key)
			}
		}
	}
	require.Contains(t, page, "alert(1)", "the control: the words are there")
	require.NotContains(t, page, "ZgotmplZ")
	var got Report
	require.NoError(t, json.Unmarshal([]byte(data), &got))
	require.Equal(t, hostile, got.Repairs[0].Node, "JSON has what stands there")
}

// TestAPageOfAnySize: none, one, and five hundred nodes.
func TestAPageOfAnySize(t *testing.T) {
	t.Parallel()
	x, data, page := forms(t, New(Input{From: ago(week), To: noon, Ledger: &ledger.Ledger{}}))
	require.Contains(t, x, "Drydock repaired nothing in this time, and would have repaired nothing. The report covers 0 nodes.")
	require.Contains(t, page, "There was no repair in this time.")
	for _, list := range []string{"policies", "byNode", "repairs", "holds", "breakers", "blind"} {
		require.Contains(t, data, `"`+list+`": []`, "a list for programs, too")
	}
	for _, n := range []int{1, 500} {
		in := Input{From: ago(week), To: noon}
		for i := range n {
			in.Nodes = append(in.Nodes, node("node-"+strconv.Itoa(i), entry("aaaaaa", remediations.OutcomeRecovered, time.Duration(i)*time.Minute, 5*time.Minute, "reboot:1")))
		}
		_, _, page := forms(t, New(in))
		require.Equal(t, n, strings.Count(page, `role="img"`), "a lane for each")
		require.Less(t, len(page), 1<<20)
	}
}
