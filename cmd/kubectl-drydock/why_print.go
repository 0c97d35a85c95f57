package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"drydock.dev/drydock/remediations"
)

// printStory prints the answer first, and what it rests on below.
func (p *plugin) printStory(t story, now time.Time, wide bool) {
	if t.Leader.None != "" {
		say(p.Out, "Drydock does nothing: %s.", t.Leader.None)
	}
	say(p.Out, "%s", t.headline(now))
	if t.Hold != nil && t.Hold.Reason != noLeader { // its sentence is above
		say(p.Out, "Why: %s", t.Hold.Message)
	}
	if t.Change != "" {
		say(p.Out, "To change that: %s", t.Change)
	}
	fmt.Fprintln(p.Out)
	printLines(p.Out, t.lines(now))
	if len(t.Guards) == 0 {
		return
	}
	rows := [][]string{cells("GUARD", "ANSWER", "WHAT IT SAW")}
	held := false
	for _, g := range t.Guards {
		answer := string(g.Standing)
		switch {
		case (g.Standing == remediations.GuardOtherKind || g.Standing == remediations.GuardOtherStep) && !wide:
			continue
		case g.Standing == remediations.GuardHolds && !held:
			answer, held = "HOLDS", true
		}
		message := g.Message
		if until := yetToCome(g.Until, now); until != "" && !strings.Contains(message, until) {
			message += "; until " + until
		}
		rows = append(rows, cells(string(g.Reason), answer, message))
	}
	fmt.Fprintln(p.Out)
	(&table{out: p.Out}).print(rows...)
}

// headline is the answer in one sentence.
func (t story) headline(now time.Time) string {
	switch t.State {
	case heldNode:
		until := yetToCome(t.Hold.Until, now)
		if until != "" {
			until = fmt.Sprintf(", until %s (in %s)", until, duration.HumanDuration(t.Hold.Until.Sub(now)))
		}
		return fmt.Sprintf("%s is not repaired: %s holds it%s.", t.Node, t.Hold.Reason, until)
	case repairedNode:
		for _, r := range t.Repairs {
			if r.Record != nil && r.Record.Phase.InFlight() {
				return fmt.Sprintf("%s is under repair: %s, %s since %s.", t.Node, r.Record.Step, r.Record.Phase, since(now, r.Record.Since))
			}
		}
		return fmt.Sprintf("%s is about to be repaired.", t.Node)
	case wellNode:
	}
	return fmt.Sprintf("%s needs no repair: no alert of a policy fires on it.", t.Node)
}

// lastShown is how many ended repairs are named.
const lastShown = 3

func (t story) lines(now time.Time) (out []line) {
	for _, a := range t.Alerts {
		policy := "no policy takes it"
		if a.Policy != "" {
			policy = "policy " + a.Policy
		}
		state := a.State
		if t.Hold != nil && state == string(t.Hold.Reason)+": "+t.Hold.Message {
			state = string(t.Hold.Reason) // its sentence is above
		}
		out = append(out, line{label: "Alert", text: fmt.Sprintf("%s (%s), %s, since %s: %s", a.Name, a.Fingerprint, policy, since(now, a.StartsAt), state)})
		for _, m := range a.NearMisses {
			out = append(out, line{label: "Alert", text: fmt.Sprintf("- policy %s does not take it: %s", m.Policy, strings.Join(m.Why, "; "))})
		}
	}
	if len(t.Alerts) == 0 {
		out = append(out, line{label: "Alert", text: "none"})
	}
	for _, r := range t.Repairs {
		if r.Record != nil {
			id := r.Record.ID
			if r.Target != "node" {
				id += " of " + r.Target
			}
			out = append(out, line{label: "Repair", text: fmt.Sprintf("%s by policy %s: %s at %s since %s", id, r.Record.Policy, r.Record.Phase, r.Record.Step, since(now, r.Record.Since))})
			if r.Record.Note != "" {
				out = append(out, line{label: "Repair", text: "- " + r.Record.Note})
			}
			if r.Target != "node" {
				known := "none"
				if r.Hold != nil {
					known = fmt.Sprintf("%s: %s", r.Hold.Reason, r.Hold.Message)
				}
				out = append(out, line{label: "Repair", text: "- why asks no guard about this repair; the hold on record: " + known})
			}
		}
	}
	switch by := ""; {
	case t.Next != "":
		if t.Provider != "" {
			by = " by " + t.Provider
		}
		out = append(out, line{label: "Next", text: t.Next + by + ", " + t.When})
	case t.When != "":
		out = append(out, line{label: "Next", text: t.When})
	}
	for i, e := range t.History {
		if i == lastShown {
			break
		}
		steps := strings.Join(e.Steps, ", ")
		if steps == "" {
			steps = "no step"
		}
		out = append(out, line{label: "Last", text: fmt.Sprintf("%s %s ago: %s by policy %s (%s)", e.Outcome, age(now, e.Ended), steps, e.Policy, e.ID)})
	}
	for _, why := range t.Unseen {
		out = append(out, line{label: "Unseen", text: why})
	}
	return out
}
