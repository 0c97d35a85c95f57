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
	// OutcomeSuperseded: what was to be repaired is no longer there to repair, or another policy repairs the node.
	OutcomeSuperseded Outcome = "Superseded"
	// OutcomeCancelled: a person, or the end of the phase's time, ended it before the plan did.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeExhausted: the plan ran out.
	OutcomeExhausted Outcome = "Exhausted"
	// OutcomeRelapsed is written over a cure when the alert comes back within the policy's relapseWindow.
	OutcomeRelapsed Outcome = "Relapsed"
	// OutcomeObserved: the policy only observes. Nothing was done, and Would says what would have been.
	OutcomeObserved Outcome = "Observed"
)

// Outcomes is the closed list, for metrics and docs.
var Outcomes = []Outcome{OutcomeRecovered, OutcomeSelfRecovered, OutcomeSuperseded, OutcomeCancelled, OutcomeExhausted, OutcomeRelapsed, OutcomeObserved}

// maxHistory is how many repairs of one kind of target a Node remembers, in so many bytes at most; and how many of those that
// were only observed, which have room of their own, so that they never push out what was done.
const (
	maxHistory       = 10
	maxHistoryBytes  = 12 << 10
	maxObservedBytes = 6 << 10
)

// Entry is one ended repair in drydock.dev/history, newest first.
type Entry struct {
	ID     string `json:"id"`
	Target string `json:"target,omitempty"` // absent: the node itself
	// Machine names the machine of the Node then, as MachineOf does. Absent: an earlier version wrote the entry.
	Machine string `json:"machine,omitempty"`
	Pod     string `json:"pod,omitempty"` // whose sidecar it was, as namespace/name
	// Location is whose leader it was, Moves what was done about it: what each key was before is in them. PutBack: it is so
	// again.
	Location string    `json:"location,omitempty"`
	Moves    []Move    `json:"moves,omitempty"`
	PutBack  bool      `json:"putBack,omitempty"`
	Policy   string    `json:"policy"`
	Outcome  Outcome   `json:"outcome"`
	Steps    Attempts  `json:"steps"`
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended"`
	// Cause is the alert that the repair was for, Also those that were firing beside it, Request what a person asked for.
	Cause   string   `json:"cause,omitempty"`
	Also    []string `json:"also,omitempty"`
	Request string   `json:"request,omitempty"`
	Why     string   `json:"why,omitempty"`
	// Evidence is what the host last said before a step on it.
	Evidence string `json:"evidence,omitempty"`
	// Left is what Drydock did to the Node and has not taken back, since somebody said to leave the Node alone.
	Left []Undo `json:"left,omitempty"`
	// After is the repair that this one went on from, since its alert came back; Earlier are the attempts that were issued
	// before this repair began.
	After   string   `json:"after,omitempty"`
	Earlier Attempts `json:"earlier,omitempty"`
	// Last is the last attempt that was issued, where the machine was cured.
	Last *StepRef `json:"last,omitempty"`
	// Reset: a person has reset the machine since, so the repair counts against no limit.
	Reset bool `json:"reset,omitempty"`
	// By is who ended it, where that was not Drydock.
	By string `json:"by,omitempty"`
	// Would is what an observing policy would have done; only of Observed, which has no Steps.
	Would *Would `json:"would,omitempty"`
}

// Would is the step that a policy would have issued if it did not only observe.
type Would struct {
	// Step is the attempt, At when it would have been issued, and Until when its wait would have been over.
	Step  Attempt   `json:"step"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	// IllSince is since when the alert had been firing. WellAt is when it had ended and the target was well; absent: the
	// fault was still there when this was written.
	IllSince time.Time `json:"illSince"`
	WellAt   time.Time `json:"wellAt,omitzero"`
}

// Unnecessary says that the target got well by itself before the step's wait was over.
func (w *Would) Unnecessary() bool { return !w.WellAt.IsZero() && w.WellAt.Before(w.Until) }

// SameObserved says that both entries say of the same time what a policy would have done for the same alert: each replica looks at the
// API servers by itself, and all of them write into the histories.
func (e Entry) SameObserved(o Entry) bool {
	return e.Outcome == OutcomeObserved && o.Outcome == OutcomeObserved && e.Target == o.Target && e.Policy == o.Policy && e.Cause == o.Cause &&
		!e.Ended.Before(o.Began) && !o.Ended.Before(e.Began)
}

// ByPerson in Entry.By: somebody cancelled the repair.
const ByPerson = "person"

// DecodeHistory reads the history. It is told to people and used for the cooldown alone; what cannot be read is left
// out rather than held against the node.
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

// EncodeHistory puts e in front and forgets the oldest of each kind of target beyond the tenth, and the oldest of all while the
// text is too long: of what was done, and of what was only observed, each by itself.
func EncodeHistory(old []Entry, e Entry) string {
	out := []Entry{e}
	for _, o := range old {
		if e.OnlyHeld() && o.OnlyHeld() && o.Target == e.Target && o.Policy == e.Policy && o.Cause == e.Cause && o.Request == e.Request {
			continue // held day after day, it would push out all that was done
		}
		out = append(out, o)
	}
	out = forgetOldest(out, func(e Entry) bool { return e.Outcome != OutcomeObserved }, maxHistoryBytes)
	out = forgetOldest(out, func(e Entry) bool { return e.Outcome == OutcomeObserved }, maxObservedBytes)
	return EncodeJSON(out)
}

// forgetOldest keeps of those entries the newest ten of each kind, and of all the newest that fit; the newest always, and each that says
// what Drydock has still to take back.
func forgetOldest(entries []Entry, of func(Entry) bool, most int) []Entry {
	same, size, full := map[Kind]int{}, len("["), false
	return slices.DeleteFunc(entries, func(e Entry) bool {
		if !of(e) || len(e.Left) > 0 {
			return false // what is left on the Node is taken back by its entry alone
		}
		kind, newest := KindOf(e.Target), len(same) == 0
		if same[kind]++; same[kind] > maxHistory {
			return true
		}
		size += len(EncodeJSON(e)) + len(",") // or the last bracket
		full = full || (size > most && !newest)
		return full
	})
}

// EncodeEntries writes a history of which nothing but outcomes has changed.
func EncodeEntries(entries []Entry) string { return EncodeJSON(entries) }

// Restarted says that a step of the repair restarted the machine.
func (e Entry) Restarted(c *Config) bool {
	return slices.ContainsFunc(e.Steps, func(a Attempt) bool { return c.Remediation(a.Name).Restarts })
}

// OnlyHeld says that the repair issued nothing, and that no person ended it.
func (e Entry) OnlyHeld() bool {
	return e.Outcome == OutcomeCancelled && e.By == "" && len(e.Steps) == 0
}

// DidNothing says that of the repair nothing follows for the next one: it issued nothing, whatever it said.
func (e Entry) DidNothing() bool { return e.OnlyHeld() || e.Outcome == OutcomeObserved }

func decodeLoose(s string, v any) error { return json.Unmarshal([]byte(s), v) }

// HistoryLeaving is the history with what the entry of that id left on the Node; ok: there is such an entry.
func HistoryLeaving(history []Entry, id string, left []Undo) (text string, ok bool) {
	out := slices.Clone(history)
	i := slices.IndexFunc(out, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return "", false
	}
	out[i].Left = left
	return EncodeJSON(out), true
}

// MarkRelapsed writes into the history that the repair's alert came back.
func MarkRelapsed(history []Entry, repair string) []Entry {
	out := slices.Clone(history)
	for i := range out {
		if out[i].ID == repair && KindOf(out[i].Target) == "" && out[i].Cured() {
			out[i].Outcome = OutcomeRelapsed
		}
	}
	return out
}

// Cured says that the repair ended because the machine was well, by an alert's policy: it may yet relapse.
func (e Entry) Cured() bool {
	return e.Last != nil && e.Request == "" && (e.Outcome == OutcomeRecovered || e.Outcome == OutcomeSelfRecovered || e.Outcome == OutcomeRelapsed)
}

// roomOfAnEntry is more than any entry needs: a history with so much room left has dropped none for its size.
const roomOfAnEntry = 2 << 10

// RemembersSince says since when the history lacks no repair that ended: the end of the oldest entry of a part of it that is full;
// zero: it is full nowhere.
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
