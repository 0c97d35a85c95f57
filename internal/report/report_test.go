package report_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

const week = 7 * 24 * time.Hour

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// entry is a repair that ended so long ago, and took so long.
func entry(id string, o remediations.Outcome, ended, took time.Duration, steps ...string) remediations.Entry {
	done := remediations.Attempts{}
	for _, s := range steps {
		done = append(done, remediations.AttemptOf(s))
	}
	return remediations.Entry{
		ID: id, Policy: "node-not-ready", Outcome: o, Steps: done, Began: ago(ended + took), Ended: ago(ended),
		Cause: "9f2c0e5b6d1a4c33", Why: "why " + id,
	}
}

func observed(id string, ended time.Duration, wellAfter time.Duration) remediations.Entry {
	e := entry(id, remediations.OutcomeObserved, ended, 12*time.Minute)
	e.Would = &remediations.Would{Step: remediations.Attempt{Name: "reboot", Number: 1}, At: e.Began.Add(2 * time.Minute), Until: e.Ended, IllSince: e.Began}
	if wellAfter > 0 {
		e.Would.WellAt = e.Began.Add(wellAfter)
	}
	return e
}

func with(e remediations.Entry, change func(*remediations.Entry)) remediations.Entry {
	change(&e)
	return e
}

func node(name string, entries ...remediations.Entry) Node {
	n := Node{Name: name, Annotations: map[string]string{}}
	if len(entries) > 0 {
		n.Annotations[remediations.HistoryKey] = remediations.EncodeJSON(entries)
	}
	return n
}

func under(n Node, r *remediations.Record) Node {
	n.Annotations[remediations.NodeRepairKey] = r.Encode()
	return n
}

func record(id string, phase remediations.Phase, since time.Duration, hold remediations.Reason) *remediations.Record {
	r := &remediations.Record{
		V: 1, ID: id, Policy: "node-not-ready", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Phase: phase,
		Step: remediations.StepRef{Index: 1, Name: "reboot", Attempt: 1}, Began: ago(since + time.Minute), Since: ago(since), Deadline: noon.Add(time.Hour),
	}
	if phase != remediations.PhasePending {
		r.Done = remediations.Attempts{{Name: "reboot", Number: 1}}
		r.Intent = &remediations.Intent{ID: id + "-1-1", At: ago(since), Outcome: remediations.CallAccepted}
	}
	if phase == remediations.PhaseExhausted {
		r.Deadline = time.Time{}
	}
	if hold != "" {
		r.Hold = &remediations.Hold{Reason: hold, Message: "silence 4711 of ada", Since: ago(since)}
	}
	return r
}

// rich has one of everything that Nodes and the ledger may hold.
func rich() Input {
	disk := func(e *remediations.Entry) { e.Policy = "node-disk-pressure" }
	return Input{
		From: ago(week), To: noon,
		Nodes: []Node{
			node("node-1",
				entry("aaaaa5", remediations.OutcomeRecovered, 3*time.Hour, 6*time.Minute+12*time.Second, "reboot:1"),
				entry("aaaaa4", remediations.OutcomeRecovered, 50*time.Hour, 11*time.Minute, "reboot:1", "reboot:2"),
				entry("aaaaa3", remediations.OutcomeRelapsed, 51*time.Hour, 5*time.Minute, "reboot:1"),
				entry("aaaaa2", remediations.OutcomeRecovered, week+time.Second, time.Minute, "reboot:1"),
			),
			under(node("node-2", with(entry("bbbbb1", remediations.OutcomeExhausted, 26*time.Hour, 40*time.Minute, "reboot:1", "reboot:2", "replace:1"), disk)),
				record("bbbbb1", remediations.PhaseExhausted, 26*time.Hour, "")),
			under(node("node-2b"), record("kkkkkk", remediations.PhaseExhausted, 2*week, "")),
			node("node-3", with(entry("cccccc", remediations.OutcomeCancelled, 30*time.Hour, 2*time.Minute, "reboot:1"), func(e *remediations.Entry) { e.By = remediations.ByPerson })),
			node("node-4", observed("dddddd", 70*time.Hour, 5*time.Minute), observed("eeeeee", 80*time.Hour, 0)),
			node("node-5", entry("ffffff", remediations.OutcomeSelfRecovered, 3*time.Hour+2*time.Minute, 8*time.Minute, "reboot:1"),
				with(entry("ffffe1", remediations.OutcomeSuperseded, 90*time.Hour, time.Minute), func(e *remediations.Entry) {
					e.Pod, e.Target, e.Policy = "sei/rpc-0", "sidecar-1a2b", "sidecar-not-ready"
				})),
			under(node("node-6"), record("gggggg", remediations.PhaseVerifying, 3*time.Minute, "")),
			under(node("node-7"), record("hhhhhh", remediations.PhasePending, 22*time.Minute, remediations.ReasonSilenced)),
			node("node-8", with(entry("iiiiii", remediations.OutcomeRecovered, 120*time.Hour, 9*time.Minute, "drain:1", "reboot:1"), func(e *remediations.Entry) { e.Cause, e.Request = "", "remediation/reboot" })),
			node("node-9"),
		},
		Ledger: &ledger.Ledger{
			Unseen:  []ledger.Span{{From: ago(100 * time.Hour), To: ago(98 * time.Hour)}},
			Orphans: []ledger.Orphan{{Node: "node-10", UID: "u", Record: *record("jjjjjj", remediations.PhaseActing, time.Minute, "")}},
			Status:  ledger.Status{Breakers: map[string]ledger.Breaker{"zone/fra2": {State: ledger.BreakerOpen, Since: ago(time.Hour)}}},
		},
	}
}

// measured are series of a Prometheus for the rich scene.
func measured() *Series {
	s := &Series{Step: time.Minute, Open: map[string][]Sample{}}
	for at := ago(week); !at.After(noon); at = at.Add(time.Minute) {
		if at.After(ago(99*time.Hour)) && at.Before(ago(98*time.Hour)) {
			continue // Drydock was away
		}
		s.InFlight = append(s.InFlight, Sample{at, 0})
	}
	s.InFlight[200].Value = 2
	span := func(from, to time.Duration, value float64) (out []Sample) {
		for d := from; d > to; d -= time.Minute {
			out = append(out, Sample{ago(d), value})
		}
		return out
	}
	s.Holds = []HoldSeries{
		{Policy: "node-not-ready", Reason: "AtLimit", Samples: append(span(60*time.Hour, 59*time.Hour, 3), span(50*time.Hour, 50*time.Hour-4*time.Minute, 1)...)},
		{Policy: "node-disk-pressure", Reason: "Silenced", Samples: span(30*time.Hour, 20*time.Hour, 1)},
	}
	s.Open[ledger.ScopeCluster] = append(span(60*time.Hour, 59*time.Hour, 1), span(40*time.Hour, 40*time.Hour-10*time.Minute, 1)...)
	return s
}

func forms(t require.TestingT, r *Report) (text, data, html string) {
	var x, j, h bytes.Buffer
	require.NoError(t, r.Page().Text(&x))
	require.NoError(t, r.JSON(&j))
	require.NoError(t, r.Page().HTML(&h))
	return x.String(), j.String(), h.String()
}

func TestARichScene(t *testing.T) {
	t.Parallel()
	for name, series := range map[string]*Series{"cluster": nil, "prometheus": measured()} {
		in := rich()
		in.Series = series
		text, data, html := forms(t, New(in))
		golden(t, name+".txt", text)
		golden(t, name+".json", data)
		golden(t, name+".html", html)
	}
}

func TestSinceCutsAtTheEndsOfRepairs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ended, took time.Duration
		counted     int
	}{
		"it ended when the time begins":        {week, time.Minute, 1},
		"it ended a second before":             {week + time.Second, time.Minute, 0},
		"it began before, and ended in it":     {week - time.Minute, time.Hour, 1},
		"it ended this very second":            {0, time.Minute, 1},
		"the leader's clock is a little ahead": {-time.Minute, time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Input{From: ago(week), To: noon, Nodes: []Node{node("n", entry("aaaaaa", remediations.OutcomeRecovered, c.ended, c.took, "reboot:1"))}})
			require.Equal(t, c.counted, r.Total.Repairs)
			require.Len(t, r.Repairs, c.counted)
		})
	}
}

// TestWhatCannotBeReadIsNamed, and counts for nothing. The good entry beside each is the control.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	good := entry("gooddd", remediations.OutcomeRecovered, time.Hour, time.Minute, "reboot:1")
	for name, c := range map[string]struct {
		bad  string
		said string
	}{
		"no entry at all":    {`"reboot"`, "n: entry 1 of its history is not counted: json: cannot unmarshal"},
		"a wrong type":       {`{"id":7}`, "n: entry 1 of its history is not counted: json: cannot unmarshal"},
		"no times":           {`{"id":"aaaaaa","policy":"p","outcome":"Recovered","steps":[]}`, `repair "aaaaaa" has no beginning or no end`},
		"ends before it":     {remediations.EncodeJSON(entry("aaaaaa", remediations.OutcomeRecovered, time.Hour, -time.Minute)), "before it began at"},
		"from the future":    {remediations.EncodeJSON(entry("aaaaaa", remediations.OutcomeRecovered, -time.Hour, time.Minute)), "which is in the future by this machine's clock"},
		"no policy":          {remediations.EncodeJSON(with(good, func(e *remediations.Entry) { e.ID, e.Policy = "unreadable", "" })), `repair "unreadable" names no policy`},
		"an unknown outcome": {remediations.EncodeJSON(entry("aaaaaa", "Healed", time.Hour, time.Minute)), `has the outcome "Healed", which this version does not know`},
		"observed, not what": {remediations.EncodeJSON(entry("aaaaaa", remediations.OutcomeObserved, time.Hour, time.Minute)), "does not name the step that would have been issued"},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("n")
			n.Annotations[remediations.HistoryKey] = "[" + c.bad + "," + remediations.EncodeJSON(good) + "]"
			r := New(Input{From: ago(week), To: noon, Nodes: []Node{n}})
			require.Equal(t, 1, r.Total.Repairs)
			require.Equal(t, "gooddd", r.Repairs[0].ID)
			require.Contains(t, r.Unsaid[0], c.said)
			text, _, _ := forms(t, r)
			require.Contains(t, text, "entry 1 of its history")
		})
	}
	broken := Node{Name: "n", Annotations: map[string]string{remediations.HistoryKey: "{", remediations.NodeRepairKey: `{"v":9}`}}
	r := New(Input{From: ago(week), To: noon, Nodes: []Node{broken}})
	require.Empty(t, r.Repairs)
	require.Contains(t, r.Unsaid[0], "n: its annotation drydock.dev/history is not a history in Drydock's format")
	require.Contains(t, r.Unsaid[1], "n: its record repair.drydock.dev/node is not counted: the record has version 9")
	r = New(Input{From: ago(week), To: noon, Nodes: []Node{under(node("n"), record("aaaaaa", remediations.PhaseActing, -time.Hour, ""))}})
	require.Empty(t, r.Repairs)
	require.Contains(t, r.Unsaid[0], "in the future by this machine's clock")
}

func TestTheReportSaysThatAFullHistoryLacksRepairs(t *testing.T) {
	t.Parallel()
	var entries []remediations.Entry
	for i := range 10 {
		entries = append(entries, entry("aaaaa"+string(rune('0'+i)), remediations.OutcomeRecovered, time.Duration(i)*time.Hour, time.Minute, "reboot:1"))
	}
	said := func(since time.Duration, entries ...remediations.Entry) []string {
		return New(Input{From: ago(since), To: noon, Nodes: []Node{node("n", entries...)}}).Unsaid
	}
	full := "A Node keeps its last ten repairs of each kind. Older repairs in this time may be missing on n (since 2026-11-23T03:00:00Z)."
	require.Contains(t, said(week, entries...), full)
	require.NotContains(t, said(8*time.Hour, entries...), full, "it goes back further than the report")
	require.NotContains(t, said(week, entries[:9]...), full, "it has room")
}

func TestRepairsAtOnceAreThoseThatOverlap(t *testing.T) {
	t.Parallel()
	at := func(nodes ...Node) int { return New(Input{From: ago(week), To: noon, Nodes: nodes}).Total.AtOnce }
	hour := func(id string, from, to int, steps ...string) remediations.Entry {
		return entry(id, remediations.OutcomeRecovered, time.Duration(to)*time.Hour, time.Duration(from-to)*time.Hour, steps...)
	}
	require.Equal(t, 0, at(node("a")))
	require.Equal(t, 1, at(node("a", hour("aaaaa1", 9, 8, "reboot:1")), node("b", hour("bbbbb1", 8, 7, "reboot:1"))), "one began when the other ended")
	require.Equal(t, 2, at(node("a", hour("aaaaa1", 9, 7, "reboot:1")), node("b", hour("bbbbb1", 8, 6, "reboot:1")), node("c", hour("ccccc1", 7, 5, "reboot:1"))))
	require.Equal(t, 1, at(node("a", hour("aaaaa1", 9, 7, "reboot:1")), node("b", hour("bbbbb1", 8, 6))), "one that issued nothing was none")
	require.Equal(t, 1, at(node("a", hour("aaaaa1", 9, 9, "reboot:1"))), "one that took less than a second")
	require.Equal(t, 2, at(node("a", hour("aaaaa1", 1, 0, "reboot:1")), under(node("b"), record("bbbbbb", remediations.PhaseActing, 30*time.Minute, ""))), "one is under way")
	r := New(Input{From: ago(week), To: noon, Nodes: []Node{node("a", observed("aaaaa1", time.Hour, 0)), node("b", observed("bbbbb1", time.Hour, 0)), node("c", hour("ccccc1", 2, 0, "reboot:1"))}})
	require.Equal(t, 2, r.Total.WouldAtOnce)
	require.Equal(t, 1, r.Total.AtOnce, "what was not done is counted by itself")
}

// TestAnExhaustedRecordIsNotCountedTwice: its end is in the history, and the record shows that it
// was not reset.
func TestAnExhaustedRecordIsNotCountedTwice(t *testing.T) {
	t.Parallel()
	ran := entry("aaaaaa", remediations.OutcomeExhausted, time.Hour, time.Hour, "reboot:1")
	r := New(Input{From: ago(week), To: noon, Nodes: []Node{under(node("n", ran), record("aaaaaa", remediations.PhaseExhausted, time.Hour, ""))}})
	require.Equal(t, 1, r.Total.Repairs)
	require.Equal(t, 1, r.Total.NeedPerson)
	require.Equal(t, 1, r.Total.AtOnce)
	require.Equal(t, map[string]int{"reboot": 1}, r.Total.Steps)
	require.Len(t, r.Repairs, 1)
	r = New(Input{From: ago(week), To: noon, Nodes: []Node{under(node("n"), record("aaaaaa", remediations.PhaseExhausted, 2*week, ""))}})
	require.Equal(t, 1, r.Total.NeedPerson, "nobody has looked since")
	require.Empty(t, r.Total.Steps, "it was done before the report's time")
	require.Zero(t, r.Total.AtOnce)
}

func TestTheOrderOfTheNodesDoesNotMatter(t *testing.T) {
	t.Parallel()
	scene := func() Input {
		in := rich()
		for _, name := range []string{"node-31", "node-30", "node-32"} {
			in.Nodes = append(in.Nodes, Node{Name: name, Annotations: map[string]string{remediations.HistoryKey: "{"}})
		}
		return in
	}
	_, want, page := forms(t, New(scene()))
	rapid.Check(t, func(t *rapid.T) {
		in := scene()
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		random.Shuffle(len(in.Nodes), func(i, j int) { in.Nodes[i], in.Nodes[j] = in.Nodes[j], in.Nodes[i] })
		_, got, html := forms(t, New(in))
		require.Equal(t, want, got)
		require.Equal(t, page, html)
	})
}

func TestTheJSONReadsBack(t *testing.T) {
	t.Parallel()
	r := New(rich())
	_, data, _ := forms(t, r)
	var got Report
	require.NoError(t, json.Unmarshal([]byte(data), &got))
	require.Equal(t, r.Total, got.Total)
	require.Equal(t, r.Policies, got.Policies)
	require.Len(t, got.Repairs, len(r.Repairs))
}

// TestTheFleetsSeriesAreNotCountedAsANodes: Prometheus knows holds and repairs in flight of the
// whole fleet alone.
func TestTheFleetsSeriesAreNotCountedAsANodes(t *testing.T) {
	t.Parallel()
	made := func(of string) *Report {
		in := rich()
		in.Of, in.Series = of, measured()
		return New(in)
	}
	const said = "Holds are the current ones: Prometheus measures holds and repairs in flight only for the whole fleet, not for some nodes."
	fleet, one := made(""), made("node-7")
	require.Len(t, fleet.Holds, 2, "the control")
	require.Equal(t, 2, *fleet.Measured.InFlight)
	require.NotContains(t, fleet.Unsaid, said)
	require.Equal(t, []Hold{{Policy: "node-not-ready", Reason: remediations.ReasonSilenced, Seconds: 22 * 60, Most: 1, Source: SourceRecords}}, one.Holds)
	require.Nil(t, one.Measured.InFlight)
	require.Contains(t, one.Unsaid, said)
	require.NotEmpty(t, one.Breakers, "a breaker concerns each node")
	text, data, _ := forms(t, one)
	require.NotContains(t, text, "Most repairs in flight at the same time")
	require.NotContains(t, data, `"inFlight"`)
}
