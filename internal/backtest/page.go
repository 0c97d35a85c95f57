package backtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Page returns the report for people.
func (r *Report) Page() *report.Page {
	asWent, cured := r.Runs[0], r.Runs[1]
	t := asWent.Totals
	p := &report.Page{
		Title: "Drydock backtest", From: r.From, To: r.Until, Made: r.Until, // not the current time, so that the same data give the same bytes
		Summary: fmt.Sprintf("Drydock would have repaired %s of nodes. %d of these repairs would have been unnecessary: the node recovered by itself within the wait of the first step. If each step had cured its node, %s would have been shorter, by %s in total.",
			text.Count(t.Acted, "fault"), t.Unnecessary, text.Count(cured.Totals.Shortened, "outage"), long(cured.Totals.Saved)),
		Figures: []report.Figure{
			{Value: strconv.Itoa(t.Acted), Name: "repairs, as it went"}, {Value: strconv.Itoa(t.Unnecessary), Name: "unnecessary"},
			{Value: strconv.Itoa(cured.Totals.Shortened), Name: "outages shortened, if steps cure"}, {Value: long(cured.Totals.Saved), Name: "shorter in total, if steps cure"},
			{Value: strconv.Itoa(len(asWent.Openings)), Name: "breaker openings"}, {Value: strconv.Itoa(t.MostAtOnce), Name: "most repairs at once"},
		},
	}
	if dark := r.dark(); dark == r.Until.Sub(r.From) {
		p.Summary = "The server has no data of kube-state-metrics for any of this time. The report cannot say what Drydock would have done."
	} else if dark > 0 {
		p.Summary += fmt.Sprintf(" The server has no data of kube-state-metrics for %s of this time, so the report says nothing about that.", report.Duration(dark))
	}
	p.Sections = append(p.Sections, report.Section{Title: "What this report assumes", List: r.Assumptions})
	if len(r.Differences) > 0 || len(r.Runs) > 2 {
		p.Sections = append(p.Sections, r.comparison())
	}
	p.Sections = append(p.Sections, r.timeline())
	for i := range r.Runs {
		p.Sections = append(p.Sections, r.Runs[i].sections(r.runName(i))...)
	}
	gaps := &report.Table{Columns: []report.Column{{Name: "from"}, {Name: "until"}, {Name: "why", Long: true}}, Empty: "There are data for the whole time."}
	for _, g := range r.Gaps {
		gaps.Rows = append(gaps.Rows, []string{report.Stamp(g.From), report.Stamp(g.Until), g.Why})
	}
	skipped := &report.Table{Columns: []report.Column{{Name: "what"}, {Name: "from"}, {Name: "until"}, {Name: "why", Long: true}}, Empty: "Everything could be read."}
	for _, s := range r.Skipped {
		skipped.Rows = append(skipped.Rows, []string{s.What, stamp(s.From), stamp(s.Until), s.Why})
	}
	p.Sections = append(p.Sections,
		report.Section{Title: "Gaps", Lead: "The replay decided nothing in these times.", Table: gaps},
		report.Section{Title: "Not read", Table: skipped})
	if len(r.NotReplayed) > 0 {
		p.Sections = append(p.Sections, report.Section{Title: "Policies that were not replayed", List: r.NotReplayed})
	}
	return p
}

func (r *Report) dark() (out time.Duration) {
	for _, g := range r.Gaps {
		out += g.Until.Sub(g.From)
	}
	return out
}

func (r *Report) runName(i int) string {
	name := "as it went"
	if r.Runs[i].Curing {
		name = "as if each step had cured"
	}
	if len(r.Runs) > 2 {
		name = r.Runs[i].Config + ", " + name
	}
	return name
}

func long(s Seconds) string { return report.Duration(time.Duration(s)) }

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return report.Stamp(t)
}

func (r *Answer) sections(name string) []report.Section {
	steps := &report.Table{Columns: []report.Column{{Name: "policy"}, {Name: "step"}, {Name: "issued", Number: true}}, Empty: "No step would have been issued."}
	for _, s := range r.ByStep {
		steps.Rows = append(steps.Rows, []string{s.Policy, s.Step, strconv.Itoa(s.Issued)})
	}
	repairs := &report.Table{
		Columns: []report.Column{{Name: "repair"}, {Name: "node"}, {Name: "policy"}, {Name: "alert began"}, {Name: "alert ended"}, {Name: "steps decided", Long: true}, {Name: "outcome"}, {Name: "verdict"}},
		Empty:   "Drydock would have repaired nothing.",
	}
	for _, one := range r.Repairs {
		if len(one.Steps) > 0 {
			repairs.Rows = append(repairs.Rows, []string{one.ID, one.Node, one.Policy, stamp(one.Began), stamp(one.Ended), words(one.Steps), one.outcome(), one.verdict()})
		}
	}
	holds := &report.Table{
		Columns: []report.Column{{Name: "policy"}, {Name: "reason"}, {Name: "times", Number: true}, {Name: "nodes", Number: true}, {Name: "in all", Number: true}, {Name: "longest", Number: true}},
		Empty:   "Nothing would have held a repair.",
	}
	for _, h := range r.Holds {
		holds.Rows = append(holds.Rows, []string{h.Policy, string(h.Reason), strconv.Itoa(h.Times), strconv.Itoa(h.Nodes), long(h.Total), long(h.Longest)})
	}
	breakers := &report.Table{Columns: []report.Column{{Name: "scope"}, {Name: "from"}, {Name: "until"}, {Name: "for", Number: true}}, Empty: "No breaker would have opened."}
	for _, o := range r.Openings {
		took := ""
		if !o.Until.IsZero() {
			took = report.Duration(o.Until.Sub(o.From))
		}
		breakers.Rows = append(breakers.Rows, []string{o.Scope, stamp(o.From), stamp(o.Until), took})
	}
	again := &report.Table{Columns: []report.Column{{Name: "node"}, {Name: "repairs", Number: true}}, Empty: "No node would have been repaired twice."}
	for _, a := range r.Again {
		again.Rows = append(again.Rows, []string{a.Node, strconv.Itoa(a.Times)})
	}
	lead := fmt.Sprintf("Repairs: %d (%d unnecessary, %d exhausted). Faults that were held and got no step: %d. Most repairs at the same time: %d.",
		r.Totals.Acted, r.Totals.Unnecessary, r.Totals.Exhausted, r.Totals.OnlyHeld, r.Totals.MostAtOnce)
	return []report.Section{
		{Title: "Steps, " + name, Lead: lead, Table: steps},
		{Title: "Repairs, " + name, Table: repairs},
		{Title: "Holds, " + name, Lead: "A node counts once for each reason that held its repair.", Table: holds},
		{Title: "Breakers, " + name, Table: breakers},
		{Title: "Repaired again, " + name, Table: again},
	}
}

func (r *Repair) outcome() string {
	return cmp.Or(string(r.Outcome), "under way")
}

// verdict returns "" if the repair did not make the fault much shorter.
func (r *Repair) verdict() string {
	switch {
	case r.Unnecessary:
		return "unnecessary"
	case r.AtLeast:
		return "shorter by at least " + long(r.Saved)
	case time.Duration(r.Saved) >= shortenedBy:
		return "shorter by " + long(r.Saved)
	}
	return ""
}

func (r *Report) comparison() report.Section {
	t := &report.Table{
		Columns: []report.Column{{Name: "node"}, {Name: "alert"}, {Name: "alert began"}, {Name: r.Runs[0].Config, Long: true}, {Name: r.Runs[2].Config, Long: true}},
		Empty:   "The two configurations would have done the same.",
	}
	for _, d := range r.Differences {
		t.Rows = append(t.Rows, []string{d.Node, d.Alert, stamp(d.Began), words(d.First), words(d.Second)})
	}
	return report.Section{Title: "What the second configuration would have done differently", Lead: "As it went.", Table: t}
}

const timelineNodes = 100

func (r *Report) timeline() report.Section {
	t := &report.Timeline{From: r.From, To: r.Until, Empty: "Drydock would have repaired nothing."}
	fleet := report.Lane{Name: "fleet"}
	for _, g := range r.Gaps {
		fleet.Spans = append(fleet.Spans, report.Span{From: g.From, To: g.Until, Mark: report.MarkGap, Word: "no data", Title: "no data: " + g.Why})
	}
	for _, o := range r.Runs[0].Openings {
		to := o.Until
		if to.IsZero() {
			to = r.Until
		}
		fleet.Spans = append(fleet.Spans, report.Span{From: o.From, To: to, Mark: report.MarkOther, Word: "breaker open", Title: "the breaker of " + o.Scope + " was open"})
	}
	if len(fleet.Spans) > 0 {
		t.Lanes = append(t.Lanes, fleet)
	}
	lanes := map[string]*report.Lane{}
	for _, one := range r.Runs[0].Repairs {
		if len(one.Steps) == 0 {
			continue
		}
		l := lanes[one.Node]
		if l == nil {
			l = &report.Lane{Name: one.Node}
			lanes[one.Node] = l
		}
		l.Spans = append(l.Spans, one.span(r.Until))
	}
	names := slices.Sorted(maps.Keys(lanes))
	for _, name := range names[:min(len(names), timelineNodes)] {
		t.Lanes = append(t.Lanes, *lanes[name])
	}
	lead := ""
	if len(names) > timelineNodes {
		lead = fmt.Sprintf("The timeline shows the first %d of %d nodes, by name. The table of repairs has all of them.", timelineNodes, len(names))
	}
	return report.Section{Title: "Repairs over time, as it went", Lead: lead, Timeline: t}
}

func (r *Repair) span(until time.Time) report.Span {
	to, mark, word := r.Over, report.MarkOther, r.outcome()
	switch {
	case to.IsZero():
		to, mark = until, report.MarkOngoing
	case r.Unnecessary:
		mark, word = report.MarkWould, "unnecessary"
	case r.Outcome == remediations.OutcomeRecovered:
		mark = report.MarkGood
	case r.Outcome == remediations.OutcomeSelfRecovered:
		mark = report.MarkSelf
	case r.Outcome == remediations.OutcomeExhausted:
		mark = report.MarkBad
	case r.Outcome == remediations.OutcomeRelapsed:
		mark = report.MarkAgain
	}
	s := report.Span{From: r.Recorded, To: to, Mark: mark, Word: word, Ref: r.ID, Title: fmt.Sprintf("%s: %s by policy %s", word, words(r.Steps), r.Policy)}
	for _, step := range r.Steps {
		s.Ticks = append(s.Ticks, step.At)
	}
	return s
}
