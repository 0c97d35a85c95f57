package remediations

import (
	"encoding/json"
	"slices"
	"time"
)

// Outcome is how a repair ended.
type Outcome string

const (
	// OutcomeRecovered: the step's own proof held for proofFor.
	OutcomeRecovered Outcome = "Recovered"
	// OutcomeSelfRecovered: the node is well and the alert gone, but the step's own proof never came.
	OutcomeSelfRecovered Outcome = "SelfRecovered"
	// OutcomeSuperseded: the target no longer exists, or another policy repairs the node.
	OutcomeSuperseded Outcome = "Superseded"
	// OutcomeCancelled: a person, or the deadline of the phase, ended the repair before the plan
	// did.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeExhausted: the plan has no more steps.
	OutcomeExhausted Outcome = "Exhausted"
	// OutcomeRelapsed replaces the outcome of a cure when the alert returns within the policy's
	// relapseWindow.
	OutcomeRelapsed Outcome = "Relapsed"
	// OutcomeObserved: the policy only observes. Drydock did nothing; Would is what it would have
	// done.
	OutcomeObserved Outcome = "Observed"
)

// Outcomes is the closed list, for metrics and documentation.
var Outcomes = []Outcome{OutcomeRecovered, OutcomeSelfRecovered, OutcomeSuperseded, OutcomeCancelled, OutcomeExhausted, OutcomeRelapsed, OutcomeObserved}

// Bounds of the history on a Node: the number of repairs per kind of target, and the bytes of them
// all. Observed repairs have a bound of their own, so that they never displace repairs that acted.
const (
	maxHistory       = 10
	maxHistoryBytes  = 12 << 10
	maxObservedBytes = 6 << 10
)

// Entry is one ended repair in drydock.dev/history. The newest entry comes first.
type Entry struct {
	ID     string `json:"id"`
	Target string `json:"target,omitempty"` // absent: the node itself
	// Machine is the Node's machine at that time, in the form of MachineOf. Absent: an earlier
	// version wrote the entry.
	Machine string `json:"machine,omitempty"`
	Pod     string `json:"pod,omitempty"` // the pod of the sidecar, as namespace/name
	// Location is the location whose leader was repaired. Moves are the changes of leadership, with
	// the earlier value of each key. PutBack: the keys have these earlier values again.
	Location string    `json:"location,omitempty"`
	Moves    []Move    `json:"moves,omitempty"`
	PutBack  bool      `json:"putBack,omitempty"`
	Policy   string    `json:"policy"`
	Outcome  Outcome   `json:"outcome"`
	Steps    Attempts  `json:"steps"`
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended"`
	// Cause is the alert of the repair. Also are the alerts that fired beside it. Request is what a
	// person requested.
	Cause   string   `json:"cause,omitempty"`
	Also    []string `json:"also,omitempty"`
	Request string   `json:"request,omitempty"`
	Why     string   `json:"why,omitempty"`
	// Evidence is the host's last report before a step on it.
	Evidence string `json:"evidence,omitempty"`
	// Left are Drydock's changes to the Node that are not undone, because a mark of a person or
	// another system on the Node forbade it.
	Left []Undo `json:"left,omitempty"`
	// After is the repair that this repair continued, because its alert returned. Earlier are the
	// attempts that were issued before this repair began.
	After   string   `json:"after,omitempty"`
	Earlier Attempts `json:"earlier,omitempty"`
	// Last is the last attempt that was issued; set only if the machine was cured.
	Last *StepRef `json:"last,omitempty"`
	// Reset: a person has reset the machine since, so that the repair counts against no limit.
	Reset bool `json:"reset,omitempty"`
	// By is who ended the repair, if that was not Drydock.
	By string `json:"by,omitempty"`
	// Would is what an observing policy would have done. Only Observed entries have it, and they
	// have no Steps.
	Would *Would `json:"would,omitempty"`
}

// Would is the step that an observing policy would have issued.
type Would struct {
	// Step is the attempt, At the time of its issue, and Until the end of its wait.
	Step  Attempt   `json:"step"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	// IllSince is when the alert began to fire. WellAt is when the alert had ended and the target
	// was well; absent: the fault still existed when this entry was written.
	IllSince time.Time `json:"illSince"`
	WellAt   time.Time `json:"wellAt,omitzero"`
}

// Unnecessary reports whether the target became well by itself before the step's wait ended.
func (w *Would) Unnecessary() bool { return !w.WellAt.IsZero() && w.WellAt.Before(w.Until) }

// SameObserved reports whether both entries describe the same observation: the same target, policy
// and alert, at overlapping times. Each replica observes the API servers by itself, and all
// replicas write into the histories.
func (e Entry) SameObserved(o Entry) bool {
	return e.Outcome == OutcomeObserved && o.Outcome == OutcomeObserved && e.Target == o.Target && e.Policy == o.Policy && e.Cause == o.Cause &&
		!e.Ended.Before(o.Began) && !o.Ended.Before(e.Began)
}

// ByPerson is the value of Entry.By if a person cancelled the repair.
const ByPerson = "person"

// DecodeHistory reads the history. The history informs people and bounds the cooldown alone, so a
// history that cannot be read counts as empty and does not hold the node.
func DecodeHistory(value string) []Entry {
	if value == "" {
		return nil
	}
	var es []Entry
	if err := decodeLoose(value, &es); err != nil {
		return nil
	}
	return es
}

// EncodeHistory adds e in front. It drops the oldest entries of each kind of target beyond the
// tenth, and the oldest entries of all while the text is too long. Entries that acted and observed
// entries are bounded separately.
func EncodeHistory(old []Entry, e Entry) string {
	out := []Entry{e}
	for _, o := range old {
		if e.OnlyHeld() && o.OnlyHeld() && o.Target == e.Target && o.Policy == e.Policy && o.Cause == e.Cause && o.Request == e.Request {
			continue // a repair that is held every day would displace all that acted
		}
		out = append(out, o)
	}
	out = forgetOldest(out, func(e Entry) bool { return e.Outcome != OutcomeObserved }, maxHistoryBytes)
	out = forgetOldest(out, func(e Entry) bool { return e.Outcome == OutcomeObserved }, maxObservedBytes)
	return EncodeJSON(out)
}

// forgetOldest keeps the newest ten of these entries per kind, and of all kinds the newest that
// fit. It always keeps the newest entry, and each entry with changes that Drydock has still to
// undo.
func forgetOldest(entries []Entry, of func(Entry) bool, most int) []Entry {
	same, size, full := map[Kind]int{}, len("["), false
	return slices.DeleteFunc(entries, func(e Entry) bool {
		if !of(e) || len(e.Left) > 0 {
			return false // only its entry lets Drydock undo what is left on the Node
		}
		kind, newest := KindOf(e.Target), len(same) == 0
		if same[kind]++; same[kind] > maxHistory {
			return true
		}
		size += len(EncodeJSON(e)) + len(",") // the comma, or the last bracket
		full = full || (size > most && !newest)
		return full
	})
}

// EncodeEntries writes a history with changed outcomes. Its entries are the same.
func EncodeEntries(entries []Entry) string { return EncodeJSON(entries) }

// Restarted reports whether a step of the repair restarted the machine.
func (e Entry) Restarted(c *Config) bool {
	return slices.ContainsFunc(e.Steps, func(a Attempt) bool { return c.Remediation(a.Name).Restarts })
}

// OnlyHeld reports whether the repair issued nothing and no person ended it.
func (e Entry) OnlyHeld() bool {
	return e.Outcome == OutcomeCancelled && e.By == "" && len(e.Steps) == 0
}

// DidNothing reports whether the repair has no effect on the next one: it issued nothing, or it
// only observed.
func (e Entry) DidNothing() bool { return e.OnlyHeld() || e.Outcome == OutcomeObserved }

func decodeLoose(s string, v any) error { return json.Unmarshal([]byte(s), v) }

// HistoryLeaving returns the history after the entry's Left was replaced. ok is false if no entry
// has the id.
func HistoryLeaving(history []Entry, id string, left []Undo) (text string, ok bool) {
	out := slices.Clone(history)
	i := slices.IndexFunc(out, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return "", false
	}
	out[i].Left = left
	return EncodeJSON(out), true
}

// MarkRelapsed writes into the history that the repair's alert returned.
func MarkRelapsed(history []Entry, repair string) []Entry {
	out := slices.Clone(history)
	for i := range out {
		if out[i].ID == repair && KindOf(out[i].Target) == "" && out[i].Cured() {
			out[i].Outcome = OutcomeRelapsed
		}
	}
	return out
}

// Cured reports whether the repair of an alert ended because the machine was well. Such a repair
// can still relapse.
func (e Entry) Cured() bool {
	return e.Last != nil && e.Request == "" && (e.Outcome == OutcomeRecovered || e.Outcome == OutcomeSelfRecovered || e.Outcome == OutcomeRelapsed)
}

// roomOfAnEntry is more than any entry needs: a history with this much room left has dropped no
// entry for its size.
const roomOfAnEntry = 2 << 10

// RemembersSince returns the time since which no ended repair is missing from the history. That is
// the end of the oldest entry of a full part; zero: no part is full.
func RemembersSince(entries []Entry) (since time.Time) {
	since = remembersSince(entries, func(e Entry) bool { return e.Outcome != OutcomeObserved }, maxHistoryBytes)
	if observed := remembersSince(entries, func(e Entry) bool { return e.Outcome == OutcomeObserved }, maxObservedBytes); observed.After(since) {
		since = observed
	}
	return since
}

func remembersSince(entries []Entry, of func(Entry) bool, most int) (since time.Time) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !of(e) })
	byKind := map[Kind][]Entry{}
	for _, e := range entries {
		byKind[KindOf(e.Target)] = append(byKind[KindOf(e.Target)], e)
	}
	full := len(EncodeJSON(entries)) > most-roomOfAnEntry
	for _, of := range byKind {
		oldest := slices.MinFunc(of, func(a, b Entry) int { return a.Ended.Compare(b.Ended) }).Ended
		if (full || len(of) >= maxHistory) && oldest.After(since) {
			since = oldest
		}
	}
	return since
}
