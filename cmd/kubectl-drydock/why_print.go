package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations/lifecycle"
)

func (p *plugin) printStory(t inspect.Why, now time.Time, wide bool) {
	printLines(p.Out, t.Cluster.Lines())
	if t.Leader.None != "" {
		say(p.Out, "Drydock does nothing: %s.", t.Leader.None)
	}
	p.printHeadline(t.Headline(now), t.Answer)
	fmt.Fprintln(p.Out)
	printLines(p.Out, whyLines(t, now))
	p.printGuards(t.Guards, now, wide)
	for _, other := range t.Others() {
		fmt.Fprintln(p.Out)
		p.printHeadline(other.Headline(now), other.Answer)
		printLines(p.Out, nextLines(other.Answer))
		p.printGuards(other.Guards, now, wide)
	}
}

func (p *plugin) printHeadline(headline string, a inspect.Answer) {
	say(p.Out, "%s", headline)
	if a.Hold != nil && a.Hold.Message != "" && a.Hold.Reason != inspect.NoLeader { // its sentence is printed above
		say(p.Out, "Why: %s", a.Hold.Message)
	}
	if a.Change != "" {
		say(p.Out, "To change that: %s", a.Change)
	}
}

func (p *plugin) printGuards(guards []lifecycle.GuardAnswer, now time.Time, wide bool) {
	if len(guards) == 0 {
		return
	}
	rows := [][]string{cells("GUARD", "ANSWER", "WHAT IT SAW")}
	held := false
	for _, g := range guards {
		answer := string(g.Standing)
		switch {
		case (g.Standing == lifecycle.GuardOtherKind || g.Standing == lifecycle.GuardOtherStep) && !wide:
			continue
		case g.Standing == lifecycle.GuardHolds && !held:
			answer, held = "HOLDS", true
		}
		message := g.Message
		if until := inspect.YetToCome(g.Until, now); until != "" && !strings.Contains(message, until) {
			message += "; until " + until
		}
		rows = append(rows, cells(string(g.Reason), answer, message))
	}
	fmt.Fprintln(p.Out)
	(&table{out: p.Out}).print(rows...)
}

func guarded(t inspect.Why, target string) bool {
	return slices.ContainsFunc(t.Targets, func(a inspect.TargetAnswer) bool { return a.Target == target && len(a.Guards) > 0 })
}

func nextLines(a inspect.Answer) []inspect.Line {
	text := a.When
	if a.Next != "" {
		text = a.Next
		if a.Provider != "" {
			text += " by " + a.Provider
		}
		text += ", " + a.When
	}
	if text == "" {
		return nil
	}
	return []inspect.Line{{Label: "Next", Text: text}}
}

const lastShown = 3

func whyLines(t inspect.Why, now time.Time) (out []inspect.Line) {
	for _, a := range t.Alerts {
		policy := "no policy takes it"
		if a.Policy != "" {
			policy = "policy " + a.Policy
		}
		state := a.State
		if t.Hold != nil && state == string(t.Hold.Reason)+": "+t.Hold.Message {
			state = string(t.Hold.Reason) // its sentence is printed above
		}
		out = append(out, inspect.Line{Label: "Alert", Text: fmt.Sprintf("%s (%s), %s, since %s: %s", a.Name, a.Fingerprint, policy, inspect.Since(now, a.StartsAt), state)})
		for _, m := range a.NearMisses {
			out = append(out, inspect.Line{Label: "Alert", Text: fmt.Sprintf("- policy %s does not take it: %s", m.Policy, strings.Join(m.Why, "; "))})
		}
	}
	if len(t.Alerts) == 0 {
		out = append(out, inspect.Line{Label: "Alert", Text: "none"})
	}
	for _, r := range t.Repairs {
		if r.Record != nil {
			id := r.Record.ID
			if r.Target != "node" {
				id += " of " + r.Target
			}
			out = append(out, inspect.Line{Label: "Repair", Text: fmt.Sprintf("%s by policy %s: %s at %s since %s", id, r.Record.Policy, r.Record.Phase, r.Record.Step, inspect.Since(now, r.Record.Since))})
			if r.Record.Note != "" {
				out = append(out, inspect.Line{Label: "Repair", Text: "- " + r.Record.Note})
			}
			if r.Target != "node" && !guarded(t, r.Target) {
				known := "none"
				if r.Hold != nil {
					known = r.Hold.Says()
				}
				out = append(out, inspect.Line{Label: "Repair", Text: "- the guards were not asked about this repair; its last recorded hold: " + known})
			}
		}
	}
	out = append(out, nextLines(t.Answer)...)
	if t.Steps != nil {
		out = append(out, inspect.Steps{Node: t.Node, Steps: t.Steps}.Lines("")...)
	}
	for i, e := range t.History {
		if i == lastShown {
			break
		}
		out = append(out, inspect.Line{Label: "Last", Text: fmt.Sprintf("%s %s ago: %s by policy %s (%s)", e.Outcome, inspect.Age(now, e.Ended), cmp.Or(stepsOf(e), "no step"), e.Policy, e.ID)})
	}
	for _, why := range t.Unseen {
		out = append(out, inspect.Line{Label: "Unseen", Text: why})
	}
	return out
}
