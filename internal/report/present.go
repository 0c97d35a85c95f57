package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// JSON prints the report as JSON. Invisible characters become \u escapes.
func (r *Report) JSON(out io.Writer) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if _, err := (text.JSONWriter{Out: out}).Write(append(data, '\n')); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// Page returns the report as a page for people.
func (r *Report) Page() *Page {
	title := "What Drydock did"
	if r.Of != "" {
		title += " to " + r.Of
	}
	return &Page{
		Title: title, From: r.From, To: r.To, Made: r.To, Summary: r.summary(), Figures: r.figures(),
		Sections: []Section{
			{
				Title: "By policy",
				Lead:  "Median and worst are the times of recovered repairs, from beginning to end. By itself: the fault ended without the step.",
				Table: numbers("policy", r.Policies, &r.Total, "No policy had a repair in this time."),
			},
			{Title: "By node", Lead: r.nodesLead(), Table: numbers("node", r.ByNode, nil, "No node had a repair in this time.")},
			{Title: "Holds", Lead: "Why repairs waited, the longest time first. Most is the largest number of repairs that waited for this reason at the same time.", Table: r.holds()},
			{Title: "Breakers", Lead: "A breaker opens when too many nodes are unhealthy at once. While it is open, no disruptive repair begins.", Table: r.breakers()},
			{Title: "Timeline", Lead: "Each number is a row of the next table.", Timeline: r.timeline()},
			{Title: "Repairs", Table: r.table()},
			{Title: "What this report does not show", List: r.Unsaid},
		},
	}
}

func (r *Report) nodesLead() string {
	lead := fmt.Sprintf("%d of %s had a repair, or have one on record.", r.NodesConcerned, some(r.Nodes, "node"))
	if gone := len(r.ByNode) - r.NodesConcerned; gone > 0 {
		lead += fmt.Sprintf(" %s is gone: its machine is being replaced.", some(gone, "Node"))
	}
	return lead
}

func some(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func secondsOf(s int64) string { return Duration(time.Duration(s) * time.Second) }

func took(s *int64) string {
	if s == nil {
		return ""
	}
	return secondsOf(*s)
}

func (r *Report) summary() string {
	t := &r.Total
	var out []string
	switch {
	case t.Repairs+t.WouldBe+t.UnderWay+t.NeedPerson == 0:
		return fmt.Sprintf("Drydock repaired nothing in this time, and would have repaired nothing. The report covers %s.", some(r.Nodes, "node"))
	case t.Repairs > 0:
		s := fmt.Sprintf("Drydock ended %s: %s.", some(t.Repairs, "repair"), outcomes(t))
		if t.MedianSeconds != nil {
			s += fmt.Sprintf(" The median time to repair was %s, and the longest was %s.", took(t.MedianSeconds), took(t.WorstSeconds))
		}
		out = append(out, s)
	default:
		out = append(out, "Drydock ended no repair.")
	}
	if t.WouldBe > 0 {
		s := fmt.Sprintf("In observe mode, Drydock would have done %s (%s).", some(t.WouldBe, "repair"), counts(t.WouldSteps))
		unnecessary := 0
		for i := range r.Repairs {
			unnecessary += count(r.Repairs[i].Outcome == remediations.OutcomeObserved && r.Repairs[i].ByItself)
		}
		out = append(out, s+fmt.Sprintf(" %d of them would have been unnecessary, because the fault ended before the end of the step's wait.", unnecessary))
	}
	if t.AtOnce > 0 {
		out = append(out, fmt.Sprintf("Most repairs on record at the same time: %d.", t.AtOnce))
	}
	if r.Measured != nil && r.Measured.InFlight != nil {
		out = append(out, fmt.Sprintf("Most repairs in flight at the same time, as Prometheus measured: %d.", *r.Measured.InFlight))
	}
	if t.UnderWay > 0 {
		out = append(out, fmt.Sprintf("On record now: %s.", some(t.UnderWay, "repair")))
	}
	if t.NeedPerson > 0 {
		out = append(out, fmt.Sprintf("A person must fix the nodes of exhausted repairs: %s.", some(t.NeedPerson, "repair")))
	}
	return strings.Join(out, " ")
}

func (r *Report) figures() []Figure {
	t := &r.Total
	return []Figure{
		{strconv.Itoa(t.Repairs), "repairs that ended"},
		{strconv.Itoa(t.Outcomes[string(remediations.OutcomeRecovered)]), "recovered"},
		{took(t.MedianSeconds), "median time to repair"},
		{took(t.WorstSeconds), "worst time to repair"},
		{strconv.Itoa(t.WouldBe), "would have been repaired"},
		{strconv.Itoa(t.ByItself), "recovered by itself"},
		{strconv.Itoa(t.NeedPerson), "need a person now"},
	}
}

func outcomes(g *Group) string {
	var out []string
	for _, o := range remediations.Outcomes {
		if n := g.Outcomes[string(o)]; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", o, n))
		}
	}
	return strings.Join(out, ", ")
}

func counts(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, of[name])
	}
	return strings.Join(names, ", ")
}

// none returns "" for 0, so that other numbers stand out.
func none(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func numbers(of string, groups []Group, total *Group, empty string) *Table {
	groups = slices.Clone(groups)
	if total != nil && len(groups) > 1 {
		all := *total
		all.Name = "all"
		groups = append(groups, all)
	}
	t := &Table{Empty: empty, Columns: []Column{
		{Name: of}, {Name: "repairs", Number: true}, {Name: "outcomes", Long: true}, {Name: "steps", Long: true}, {Name: "median", Number: true},
		{Name: "worst", Number: true}, {Name: "at once", Number: true}, {Name: "would be", Number: true}, {Name: "would-be steps", Long: true}, {Name: "would be at once", Number: true},
		{Name: "by itself", Number: true}, {Name: "on record", Number: true}, {Name: "people", Long: true},
	}}
	for i := range groups {
		g := &groups[i]
		people := map[string]int{}
		for word, n := range map[string]int{"requested": g.Requested, "cancelled": g.Cancelled, "must look": g.NeedPerson} {
			if n > 0 {
				people[word] = n
			}
		}
		t.Rows = append(t.Rows, []string{
			g.Name, none(g.Repairs), outcomes(g), counts(g.Steps), took(g.MedianSeconds), took(g.WorstSeconds), none(g.AtOnce), none(g.WouldBe),
			counts(g.WouldSteps), none(g.WouldAtOnce), none(g.ByItself), none(g.UnderWay), counts(people),
		})
	}
	if total == nil { // the columns "at once" are nearly always 1 for one node
		for i, c := range t.Columns {
			for j := range t.Rows {
				if strings.HasSuffix(c.Name, "at once") {
					t.Rows[j][i] = ""
				}
			}
		}
	}
	return t.lean()
}

func (r *Report) holds() *Table {
	t := &Table{Empty: "No repair on record is held.", Columns: []Column{
		{Name: "policy"}, {Name: "reason"}, {Name: "held", Number: true}, {Name: "most", Number: true}, {Name: "from"},
	}}
	if r.Measured != nil && r.Of == "" {
		t.Empty = "No repair was held."
	}
	for _, h := range r.Holds {
		t.Rows = append(t.Rows, []string{h.Policy, string(h.Reason), secondsOf(h.Seconds), strconv.Itoa(h.Most), h.Source})
	}
	return t
}

func (r *Report) breakers() *Table {
	t := &Table{Empty: "No breaker is open.", Columns: []Column{
		{Name: "breaker"}, {Name: "openings", Number: true}, {Name: "open for", Number: true}, {Name: "now"}, {Name: "from"},
	}}
	switch {
	case r.Measured != nil:
		t.Empty = "No breaker was open."
	case !r.ledger:
		t.Empty = "Unknown: the ledger was not read."
	}
	for _, b := range r.Breakers {
		t.Rows = append(t.Rows, []string{b.Scope, strconv.Itoa(b.Openings), secondsOf(b.Seconds), string(b.State), b.Source})
	}
	return t
}

func (r *Repair) state() string {
	switch {
	case r.Outcome == remediations.OutcomeObserved && r.ByItself:
		return "Observed, healthy by itself"
	case r.ByPerson:
		return string(r.Outcome) + " by a person"
	case r.NeedsPerson:
		return "Exhausted, needs a person"
	case r.Outcome != "":
		return string(r.Outcome)
	}
	return string(r.Phase) + " now"
}

func (r *Repair) steps() string {
	if r.Would != (remediations.Attempt{}) {
		return "would " + r.Would.String()
	}
	return r.Steps.String()
}

func (r *Report) table() *Table {
	t := &Table{Empty: "There was no repair in this time.", Columns: []Column{
		{Name: "#", Number: true}, {Name: "node"}, {Name: "target"}, {Name: "policy"}, {Name: "began"}, {Name: "took", Number: true}, {Name: "steps", Long: true},
		{Name: "outcome"}, {Name: "request"}, {Name: "why", Long: true},
	}}
	for i := range r.Repairs {
		one := &r.Repairs[i]
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(one.Number), one.Node, one.Target, one.Policy, Stamp(one.Began), secondsOf(one.Seconds), one.steps(), one.state(), one.Request, one.Why,
		})
	}
	return t.lean()
}

func (r *Report) timeline() *Timeline {
	t := &Timeline{From: r.From, To: r.To, Empty: "There was no repair in this time."}
	var fleet []Span
	for _, p := range r.Blind {
		fleet = append(fleet, Span{From: p.From, To: p.To, Mark: MarkGap, Word: "Drydock was blind", Title: fmt.Sprintf("Drydock was blind from %s to %s", Stamp(p.From), Stamp(p.To))})
	}
	for _, b := range r.Breakers {
		for _, p := range b.open {
			fleet = append(fleet, Span{From: p.From, To: p.To, Mark: MarkStop, Word: "breaker open", Title: fmt.Sprintf("breaker %s was open from %s to %s", b.Scope, Stamp(p.From), Stamp(p.To))})
		}
	}
	if len(fleet) > 0 {
		t.Lanes = append(t.Lanes, Lane{Name: "fleet", Spans: fleet})
	}
	lanes := map[string][]Span{}
	for i := range r.Repairs {
		one := &r.Repairs[i]
		s := Span{
			From: one.Began, To: one.Ended, Mark: one.mark(), Word: one.state(), Ref: strconv.Itoa(one.Number), Ticks: one.ticks,
			Title: fmt.Sprintf("%d: %s, policy %s, began %s, took %s, steps: %s", one.Number, one.state(), one.Policy, Stamp(one.Began), secondsOf(one.Seconds), cell(one.steps())),
		}
		if s.To.IsZero() {
			s.To = r.To
		}
		lanes[one.Node] = append(lanes[one.Node], s)
	}
	for _, node := range slices.Sorted(maps.Keys(lanes)) {
		t.Lanes = append(t.Lanes, Lane{Name: node, Spans: lanes[node]})
	}
	return t
}

func (r *Repair) mark() Mark {
	switch {
	case r.Outcome == "" && !r.NeedsPerson:
		return MarkOngoing
	case r.ByPerson:
		return MarkPerson
	}
	switch r.Outcome {
	case remediations.OutcomeRecovered:
		return MarkGood
	case remediations.OutcomeSelfRecovered:
		return MarkSelf
	case remediations.OutcomeRelapsed:
		return MarkAgain
	case remediations.OutcomeObserved:
		return MarkWould
	case remediations.OutcomeSuperseded, remediations.OutcomeCancelled:
		return MarkOther
	case remediations.OutcomeExhausted:
	}
	return MarkBad
}
