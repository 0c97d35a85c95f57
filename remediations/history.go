package remediations

import (
	"encoding/json"
	"slices"
	"time"
)

// Outcome is how a repair ended.
type Outcome string

const (
	// OutcomeRecovered means that the step's own proof of the cure lasted for proofFor.
	OutcomeRecovered Outcome = "Recovered"
	// OutcomeSelfRecovered means that the node is well and the alert is gone, without a proof that
	// the step caused this.
	OutcomeSelfRecovered Outcome = "SelfRecovered"
	// OutcomeSuperseded means that the target no longer exists, or another policy repairs the node.
	OutcomeSuperseded Outcome = "Superseded"
	// OutcomeCancelled means that the repair ended early: a person cancelled it, it was held for too
	// long, or its policy was removed or edited.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeExhausted means that the plan has no more steps and the target is not well.
	OutcomeExhausted Outcome = "Exhausted"
	// OutcomeRelapsed replaces the outcome of a cure when the alert returns within the policy's
	// relapseWindow.
	OutcomeRelapsed Outcome = "Relapsed"
	// OutcomeObserved means that the policy only observes and nothing was done. Entry.Would has the
	// step that would have been issued.
	OutcomeObserved Outcome = "Observed"
)

// Outcomes lists every Outcome.
var Outcomes = []Outcome{OutcomeRecovered, OutcomeSelfRecovered, OutcomeSuperseded, OutcomeCancelled, OutcomeExhausted, OutcomeRelapsed, OutcomeObserved}

// The bounds of the history on a Node: entries for each kind of target, and bytes of all entries
// together. Observed entries have their own bounds, so that they never displace repairs that acted.
const (
	maxHistory       = 10
	maxHistoryBytes  = 12 << 10
	maxObservedBytes = 6 << 10
)

// Entry is one ended repair in drydock.dev/history. The newest entry comes first.
type Entry struct {
	ID string `json:"id"`
	// Empty for the node itself.
	Target string `json:"target,omitempty"`
	// In the form of MachineOf. Empty in entries of earlier versions.
	Machine string `json:"machine,omitempty"`
	// As namespace/name.
	Pod      string `json:"pod,omitempty"`
	Location string `json:"location,omitempty"`
	// The changes of leadership, with the earlier value of each key. PutBack means that these
	// values were restored.
	Moves   []Move    `json:"moves,omitempty"`
	PutBack bool      `json:"putBack,omitempty"`
	Policy  string    `json:"policy"`
	Outcome Outcome   `json:"outcome"`
	Steps   Attempts  `json:"steps"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	// Cause is the fingerprint of the repair's alert. Also are the fingerprints of other alerts that
	// fired during the repair.
	Cause   string   `json:"cause,omitempty"`
	Also    []string `json:"also,omitempty"`
	Request string   `json:"request,omitempty"`
	Why     string   `json:"why,omitempty"`
	// The last lines of the host's log from before a step on the host.
	Evidence string `json:"evidence,omitempty"`
	// Changes to the Node that cannot be undone yet: the machine is still switched off, or the Node
	// has a mark of a person or another system.
	Left []Undo `json:"left,omitempty"`
	// After is the earlier repair that this repair continued, because the alert returned. Earlier
	// are all attempts of that repair and of those that it continued.
	After   string   `json:"after,omitempty"`
	Earlier Attempts `json:"earlier,omitempty"`
	// The last attempt that was issued. Nil if the repair did not cure the machine.
	Last *StepRef `json:"last,omitempty"`
	// A person reset the machine after this repair, so it counts against no limit.
	Reset bool `json:"reset,omitempty"`
	// ByPerson if a person ended the repair, otherwise empty.
	By string `json:"by,omitempty"`
	// Only Observed entries have it, and their Steps are empty.
	Would *Would `json:"would,omitempty"`
}

// Would is the step that an observing policy would have issued.
type Would struct {
	// At is when the attempt would have been issued. Until is when the wait for its proof would
	// have ended.
	Step  Attempt   `json:"step"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	// When the alert began to fire.
	IllSince time.Time `json:"illSince"`
	// When the alert had ended and the target was well. Zero if the fault still existed when the
	// entry was written.
	WellAt time.Time `json:"wellAt,omitzero"`
}

// Unnecessary reports whether the target became well by itself before the step's wait ended.
func (w *Would) Unnecessary() bool { return !w.WellAt.IsZero() && w.WellAt.Before(w.Until) }

// SameObserved reports whether two Observed entries are about the same fault. For API servers there
// may be several, because each replica observes them and writes its own.
func (e Entry) SameObserved(o Entry) bool {
	return e.Outcome == OutcomeObserved && o.Outcome == OutcomeObserved && e.Target == o.Target && e.Policy == o.Policy && e.Cause == o.Cause &&
		!e.Ended.Before(o.Began) && !o.Ended.Before(e.Began)
}

// ByPerson is the value of Entry.By if a person cancelled the repair.
const ByPerson = "person"

// DecodeHistory decodes the history. An unreadable history has no entries and holds no repair: its
// entries are for people, and for the time that must pass before the next repair.
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

// EncodeHistory returns the text of the history with the entry e. It keeps the ten newest entries
// of each kind of target, and fewer if the text is too long. If e was only held, it also drops
// older entries that were only held for the same cause.
func EncodeHistory(old []Entry, e Entry) string {
	out := []Entry{e}
	for _, o := range old {
		if e.OnlyHeld() && o.OnlyHeld() && o.Target == e.Target && o.Policy == e.Policy && o.Cause == e.Cause && o.Request == e.Request {
			continue // only the newest one: a repair that is held every day would displace all others
		}
		out = append(out, o)
	}
	out = forgetOldest(out, func(e Entry) bool { return e.Outcome != OutcomeObserved }, maxHistoryBytes)
	out = forgetOldest(out, func(e Entry) bool { return e.Outcome == OutcomeObserved }, maxObservedBytes)
	return EncodeJSON(out)
}

// forgetOldest always keeps the newest entry, and entries with changes that must still be undone.
// most is a number of bytes of JSON.
func forgetOldest(entries []Entry, of func(Entry) bool, most int) []Entry {
	same, size, full := map[Kind]int{}, len("["), false
	return slices.DeleteFunc(entries, func(e Entry) bool {
		if !of(e) || len(e.Left) > 0 {
			return false // Drydock knows only from this entry what to undo on the Node
		}
		kind, newest := KindOf(e.Target), len(same) == 0
		if same[kind]++; same[kind] > maxHistory {
			return true
		}
		size += len(EncodeJSON(e)) + len(",") // a comma, or the closing bracket
		full = full || (size > most && !newest)
		return full
	})
}

// EncodeEntries returns the text of a history without adding or dropping entries.
func EncodeEntries(entries []Entry) string { return EncodeJSON(entries) }

// Restarted reports whether a step of the repair restarted the machine.
func (e Entry) Restarted(c *Config) bool {
	return slices.ContainsFunc(e.Steps, func(a Attempt) bool { return c.Remediation(a.Name).Restarts })
}

// OnlyHeld reports whether the repair ended before it issued any step, and no person ended it.
func (e Entry) OnlyHeld() bool {
	return e.Outcome == OutcomeCancelled && e.By == "" && len(e.Steps) == 0
}

// DidNothing reports whether the repair issued no step, because it was only held or only observed.
// Such a repair has no effect on the next one.
func (e Entry) DidNothing() bool { return e.OnlyHeld() || e.Outcome == OutcomeObserved }

func decodeLoose(s string, v any) error { return json.Unmarshal([]byte(s), v) }

// HistoryLeaving returns the history with the changes that must still be undone in the entry with
// this id. ok is false if no entry has the id.
func HistoryLeaving(history []Entry, id string, left []Undo) (text string, ok bool) {
	out := slices.Clone(history)
	i := slices.IndexFunc(out, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return "", false
	}
	out[i].Left = left
	return EncodeJSON(out), true
}

// MarkRelapsed returns the history with the outcome Relapsed for the repair with this id, if it had
// cured the node.
func MarkRelapsed(history []Entry, repair string) []Entry {
	out := slices.Clone(history)
	for i := range out {
		if out[i].ID == repair && KindOf(out[i].Target) == "" && out[i].Cured() {
			out[i].Outcome = OutcomeRelapsed
		}
	}
	return out
}

// Cured reports whether an alert caused the repair, and the repair ended because the machine was
// well, even if the alert has returned later.
func (e Entry) Cured() bool {
	return e.Last != nil && e.Request == "" && (e.Outcome == OutcomeRecovered || e.Outcome == OutcomeSelfRecovered || e.Outcome == OutcomeRelapsed)
}

// More bytes than any entry needs: with this much free room, a history has never dropped an entry
// because of its size.
const roomOfAnEntry = 2 << 10

// RemembersSince returns a time. Every repair that ended later has an entry in the history. Zero
// means that the history has never dropped an entry.
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
