package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// New makes the report from its input. The order of the nodes does not matter.
func New(in Input) *Report {
	in.From, in.To = in.From.UTC().Truncate(time.Second), in.To.UTC().Truncate(time.Second)
	g := gather(&in)
	r := &Report{
		APIVersion: "drydock.dev/v1alpha1", Kind: "Report", From: in.From, To: in.To, Of: in.Of, Nodes: len(in.Nodes),
		Total:    group("", g.repairs),
		Policies: groups(g.repairs, func(r *Repair) string { return r.Policy }),
		ByNode:   groups(g.repairs, func(r *Repair) string { return r.Node }),
		Repairs:  append([]Repair{}, g.repairs...),
		ledger:   in.Ledger != nil,
		Holds:    []Hold{}, Breakers: []Breaker{}, Blind: g.blind(), Unsaid: []string{},
	}
	for _, n := range in.Nodes {
		r.NodesConcerned += count(slices.ContainsFunc(r.ByNode, func(g Group) bool { return g.Name == n.Name }))
	}
	r.Holds, r.Breakers, r.Measured = g.holds(), g.breakers(), g.measured()
	r.Unsaid = append(r.Unsaid, g.unsaid(r)...)
	return r
}

func groups(repairs []Repair, of func(*Repair) string) []Group {
	by := map[string][]Repair{}
	for i := range repairs {
		by[of(&repairs[i])] = append(by[of(&repairs[i])], repairs[i])
	}
	out := []Group{}
	for name, some := range by {
		out = append(out, group(name, some))
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Repairs, a.Repairs), cmp.Compare(b.WouldBe, a.WouldBe), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func group(name string, repairs []Repair) Group {
	g := Group{Name: name, Outcomes: map[string]int{}, Steps: map[string]int{}, WouldSteps: map[string]int{}}
	var took []int64
	var acted, would []Period
	for i := range repairs {
		r := &repairs[i]
		for _, s := range r.Steps {
			g.Steps[s.Name]++
		}
		switch {
		case r.Outcome == remediations.OutcomeObserved:
			g.WouldBe++
			g.WouldSteps[r.Would.Name]++
		case r.Outcome != "":
			g.Repairs++
			g.Outcomes[string(r.Outcome)]++
		case !r.NeedsPerson:
			g.UnderWay++
		}
		if r.Outcome == remediations.OutcomeRecovered {
			took = append(took, r.Seconds)
		}
		switch {
		case r.acted.From.IsZero():
		case r.Outcome == remediations.OutcomeObserved:
			would = append(would, r.acted)
		default:
			acted = append(acted, r.acted)
		}
		g.ByItself += count(r.ByItself)
		g.Requested += count(r.Request != "")
		g.Cancelled += count(r.ByPerson)
		g.NeedPerson += count(r.NeedsPerson)
	}
	g.AtOnce, g.WouldAtOnce = atOnce(acted), atOnce(would)
	if len(took) > 0 {
		slices.Sort(took)
		median, worst := (took[(len(took)-1)/2]+took[len(took)/2])/2, took[len(took)-1]
		g.MedianSeconds, g.WorstSeconds = &median, &worst
	}
	return g
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// atOnce returns the largest number of periods at one moment. Two periods do not overlap if one
// ends when the other begins.
func atOnce(periods []Period) int {
	type edge struct {
		at time.Time
		// rank orders edges at the same moment: ends, beginnings, then ends of periods without a length.
		rank, by int
	}
	var edges []edge
	for _, p := range periods {
		end := edge{p.To, 0, -1}
		if !p.To.After(p.From) {
			end = edge{p.From, 2, -1}
		}
		edges = append(edges, edge{p.From, 1, 1}, end)
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.rank, b.rank)) })
	now, most := 0, 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return most
}

// within cuts p to the report's period. It returns false if nothing is left.
func (g *gathered) within(p Period) (Period, bool) {
	if p.From.Before(g.From) {
		p.From = g.From
	}
	if p.To.IsZero() || p.To.After(g.To) {
		p.To = g.To
	}
	return Period{p.From.UTC(), p.To.UTC()}, p.To.After(p.From)
}

func (g *gathered) blind() []Period {
	out := []Period{}
	if g.Ledger == nil {
		return out
	}
	for _, s := range g.Ledger.Unseen {
		if p, ok := g.within(Period{s.From, s.To}); ok {
			out = append(out, p)
		}
	}
	return out
}

// holds returns what Prometheus measured. Without Prometheus, or in a report about some nodes, it
// returns the current holds from the records: Prometheus has only the holds of the whole fleet.
func (g *gathered) holds() []Hold {
	out := []Hold{}
	if g.Series != nil && g.Of == "" {
		for _, s := range g.Series.Holds {
			h := Hold{Policy: s.Policy, Reason: remediations.Reason(s.Reason), Source: SourcePrometheus}
			for _, one := range s.Samples {
				if one.Value > 0 {
					h.Seconds += seconds(g.Series.Step)
					h.Most = max(h.Most, int(one.Value))
				}
			}
			h.Seconds = min(h.Seconds, seconds(g.To.Sub(g.From)))
			if h.Most > 0 {
				out = append(out, h)
			}
		}
	} else {
		type key struct {
			policy string
			reason remediations.Reason
		}
		now := map[key]*Hold{}
		for _, h := range g.held {
			of := now[key{h.policy, h.reason}]
			if of == nil {
				of = &Hold{Policy: h.policy, Reason: h.reason, Source: SourceRecords}
				now[key{h.policy, h.reason}] = of
			}
			of.Most++
			if p, ok := g.within(Period{From: h.since}); ok {
				of.Seconds = max(of.Seconds, seconds(p.To.Sub(p.From)))
			}
		}
		for _, h := range now {
			out = append(out, *h)
		}
	}
	slices.SortFunc(out, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// breakers returns openings from Prometheus, and breakers that are not closed now according to the
// ledger.
func (g *gathered) breakers() []Breaker {
	out := []Breaker{}
	states, open := map[string]ledger.Breaker{}, map[string][]Sample{}
	if g.Ledger != nil {
		states = g.Ledger.Status.Breakers
	}
	if g.Series != nil {
		open = g.Series.Open
	}
	for _, scope := range slices.Sorted(maps.Keys(states)) {
		if len(open[scope]) == 0 {
			b := Breaker{Scope: scope, State: states[scope].State, Openings: 1, Source: SourceLedger}
			if p, ok := g.within(Period{From: states[scope].Since}); ok && b.State == ledger.BreakerOpen {
				b.Seconds, b.open = seconds(p.To.Sub(p.From)), []Period{p}
			}
			out = append(out, b)
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(open)) {
		b := Breaker{Scope: scope, State: states[scope].State, Source: SourcePrometheus}
		if g.Ledger != nil && b.State == "" {
			b.State = ledger.BreakerClosed // the ledger does not list closed breakers
		}
		for _, s := range open[scope] {
			if s.Value <= 0 {
				continue
			}
			b.Seconds += seconds(g.Series.Step)
			until := s.At.Add(g.Series.Step).UTC()
			if last := len(b.open) - 1; last >= 0 && !s.At.After(b.open[last].To) {
				b.open[last].To = until
				continue
			}
			b.open = append(b.open, Period{s.At.UTC(), until})
		}
		b.Seconds = min(b.Seconds, seconds(g.To.Sub(g.From)))
		if b.Openings = len(b.open); b.Openings > 0 {
			out = append(out, b)
		}
	}
	return out
}

func (g *gathered) measured() *Measured {
	if g.Series == nil {
		return nil
	}
	m := &Measured{StepSeconds: seconds(g.Series.Step)}
	if g.Of == "" { // this number is only known for the whole fleet
		most := 0
		for _, s := range g.Series.InFlight {
			most = max(most, int(s.Value))
		}
		m.InFlight = &most
	}
	expected := int64(g.To.Sub(g.From)/g.Series.Step) + 1
	m.MissingSeconds = max(0, expected-int64(len(g.Series.InFlight))) * m.StepSeconds
	return m
}

const mostNamed = 10

func (g *gathered) unsaid(r *Report) []string {
	out := slices.Clone(g.unreadable)
	if g.LedgerProblem != "" {
		out = append(out, "The ledger was not read, so breakers and the times when Drydock was blind are missing: "+g.LedgerProblem)
	}
	if len(g.full) > 0 {
		named := g.full
		more := ""
		if len(named) > mostNamed {
			named, more = named[:mostNamed], fmt.Sprintf(" and %d more", len(g.full)-mostNamed)
		}
		out = append(out, "A Node keeps its last ten repairs of each kind. Older repairs in this time may be missing on "+strings.Join(named, ", ")+more+".")
	}
	if g.collapsed {
		out = append(out, "If repairs for one alert were only held, day after day, the history has only the last one.")
	}
	switch {
	case g.SeriesProblem != "":
		out = append(out, "Prometheus was not read: "+g.SeriesProblem)
		fallthrough
	case g.Series == nil:
		out = append(out, "Holds are the current ones, and breakers are those that are not closed now: Nodes and the ledger keep no past holds and breakers. With --prometheus URL, the report has all of them.")
	default:
		measured, missed := "Holds, breakers and repairs in flight", "holds at that time are"
		if g.Of != "" {
			measured, missed = "Breakers", "breakers that were open at that time are"
			out = append(out, "Holds are the current ones: Prometheus measures holds and repairs in flight only for the whole fleet, not for some nodes.")
		}
		out = append(out, fmt.Sprintf("%s were measured every %s: shorter ones may be missing.", measured, Duration(g.Series.Step)))
		if r.Measured.MissingSeconds > 0 {
			out = append(out, fmt.Sprintf("Prometheus has no sample of a leading Drydock for %s of this time: %s not counted.", Duration(time.Duration(r.Measured.MissingSeconds)*time.Second), missed))
		}
	}
	return append(out,
		"The history of a deleted Node is lost.",
		"The history has the beginning and the end of a repair, but not the times of its steps. So repairs at the same time are counted from beginning to end, including the time that they waited.",
		"Past approvals, pauses and silences are not in any history. Requests and cancellations are counted.",
	)
}
