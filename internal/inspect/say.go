package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Stamp returns the time in UTC in the format RFC 3339.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Since formats a time in the past with its age, for example "2026-11-20T21:05:00Z (3m ago)".
func Since(now, then time.Time) string {
	return fmt.Sprintf("%s (%s ago)", Stamp(then), Age(now, then))
}

// Age returns how long before now the given time was, for example "3m". It is "" for the zero time,
// and "0s" for a time in the future.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}

// YetToCome returns "" if the time has passed or is nil.
func YetToCome(at *time.Time, now time.Time) string {
	if at == nil || at.IsZero() || !at.After(now) {
		return ""
	}
	return Stamp(*at)
}

// Led returns the nodes that led a mesh location one after the other, for example "n1 to n2".
func Led(moves []remediations.Move) string {
	var out []string
	for i, m := range moves {
		if i == 0 {
			out = append(out, m.From)
		}
		out = append(out, m.To)
	}
	return strings.Join(out, " to ")
}

func leftWith(r *remediations.Record) string {
	switch {
	case len(r.Moves) == 0:
		return ""
	case len(r.Undo) == 0:
		return "; the leadership moved from " + Led(r.Moves) + " and was put back to " + r.Moves[0].From
	}
	return "; the leadership moved from " + Led(r.Moves) + " and is left there"
}

// Says returns a sentence about the repair, or "" if the table's other columns already show
// everything.
func (r Repair) Says() string {
	switch {
	case r.Record != nil && r.Record.Phase == remediations.PhaseExhausted:
		if !r.Record.WellSince.IsZero() {
			return fmt.Sprintf("the node has been healthy since %s; if it is fixed, run `kubectl drydock reset %s`", Stamp(r.Record.WellSince), r.Node)
		}
		return fmt.Sprintf("a person must check the node%s; once it is fixed, run `kubectl drydock reset %s`", leftWith(r.Record), r.Node)
	case r.Hold != nil:
		return r.Hold.Message
	case r.Record != nil && r.Record.Note == "" && len(r.Record.Moves) > 0:
		return "leadership moved from " + Led(r.Record.Moves)
	case r.Record != nil:
		return r.Record.Note
	case r.Problem != "":
		return r.Problem
	case r.Alert != nil:
		if r.Alert.Ended != "" {
			return "alert " + r.Alert.Name + "; " + r.Alert.Ended + ", and no repair has begun since"
		}
		return "alert " + r.Alert.Name + "; no repair has begun yet"
	}
	if r.Ill == "" {
		return ""
	}
	return fmt.Sprintf("%s, but no alert for this node has arrived that a policy matches; to see which alert Drydock waits for: `kubectl drydock why %s`", r.Ill, r.Node)
}

// CauseOf returns the alert or the request that caused a repair.
func CauseOf(c remediations.Cause) string {
	if c.Alert != "" {
		return "alert/" + c.Alert
	}
	return "request/" + c.Request
}

// Name returns the node's name and, if the repair has another target, that target.
func (r Repair) Name() string {
	switch {
	case r.Record != nil && r.Record.Pod != nil:
		return named(r.Node, remediations.KindSidecar, r.Record.Pod.String())
	case r.Record != nil && r.Record.Location != "":
		return named(r.Node, remediations.KindLocation, r.Record.Location)
	case r.Target != "node":
		return r.Node + "/" + r.Target
	}
	return r.Node
}

func named(node string, of remediations.Kind, name string) string {
	if of == remediations.KindLocation {
		name = "leader of " + name
	}
	return node + " (" + name + ")"
}

// Headline returns the answer in one sentence.
func (t Why) Headline(now time.Time) string {
	if r := t.inFlight(); r != nil && t.State == UnderRepair {
		return fmt.Sprintf("%s is under repair: %s, %s since %s.", cmp.Or(t.Subject, t.Node), r.Step, r.Phase, Since(now, r.Since))
	}
	switch {
	case t.State == Unknown:
		return fmt.Sprintf("It is unknown whether Drydock repairs %s: %s.", cmp.Or(t.Subject, t.Node), t.Because)
	case t.Subject != "":
		return TargetAnswer{Subject: t.Subject, Answer: t.Answer}.Headline(now)
	case t.State == UnderRepair:
		return fmt.Sprintf("%s is about to be repaired.", t.Node)
	case t.State == Held:
		return t.heldBy(t.Node, now)
	case t.Because != "":
		return fmt.Sprintf("Drydock does not repair %s now: %s.", t.Node, t.Because)
	}
	return fmt.Sprintf("%s needs no repair: no alert of a policy fires on it.", t.Node)
}

func (t Why) firing() (out []string) {
	for _, a := range t.Alerts {
		if a.Policy != "" {
			out = append(out, fmt.Sprintf("alert %s of policy %s is %s", a.Name, a.Policy, a.State))
		}
	}
	if len(out) == 0 && t.Because != "" {
		return []string{t.Because}
	}
	return out
}

func (t Why) inFlight() *remediations.Record {
	for _, r := range t.Repairs {
		if r.Record != nil && r.Record.Phase.InFlight() {
			return r.Record
		}
	}
	return nil
}

// Headline returns the answer in one sentence.
func (t TargetAnswer) Headline(now time.Time) string {
	switch t.State {
	case Held:
		return t.heldBy(t.Subject, now)
	case UnderRepair:
		return fmt.Sprintf("%s is about to be repaired, unless Drydock finds a reason to hold the repair.", t.Subject)
	case Well, Unknown:
	}
	return fmt.Sprintf("Drydock does nothing for %s now.", t.Subject)
}

func (a Answer) heldBy(subject string, now time.Time) string {
	reasons, until := a.holding(now)
	by, end := reasons[0]+" holds it", ""
	if last := len(reasons) - 1; last > 0 {
		by = strings.Join(reasons[:last], ", ") + " and " + reasons[last] + " hold it"
	}
	if until != nil {
		end = fmt.Sprintf(", until %s (in %s)", Stamp(*until), text.Duration(rounded(until.Sub(now))))
		if len(reasons) > 1 {
			end += " at the earliest"
		}
	}
	return fmt.Sprintf("%s is not repaired: %s%s.", subject, by, end)
}

// holding returns the reasons of all holds, in the order of the guards. until is the latest end, or
// nil if no hold has an end in the future.
func (a Answer) holding(now time.Time) (reasons []string, until *time.Time) {
	add := func(reason remediations.Reason, end *time.Time) {
		if !slices.Contains(reasons, string(reason)) {
			reasons = append(reasons, string(reason))
		}
		if YetToCome(end, now) != "" && (until == nil || end.After(*until)) {
			until = end
		}
	}
	add(a.Hold.Reason, a.Hold.Until)
	for _, g := range a.Guards {
		if g.Standing == lifecycle.GuardHolds {
			add(g.Reason, g.Until)
		}
	}
	return reasons, until
}

func rounded(d time.Duration) time.Duration {
	if d = d.Round(time.Second); d >= time.Hour {
		return d.Round(time.Minute)
	}
	return d
}
