package remediations

import (
	"fmt"
	"slices"
	"time"
)

// leave keeps what the end of a repair would take back off the Node while a person or another system says to leave the Node
// alone. It goes into the history, and is taken back when that word ends.
func (s *State) leave(d *Decision, undo []Undo, now time.Time) (left []Undo) {
	reason, _ := s.wordOnNode(now)
	if reason == "" || (!d.Uncordon && !d.Untaint) {
		return nil
	}
	for _, u := range undo {
		if (u.Kind == UndoCordon && d.Uncordon) || (u.Kind == UndoTaint && d.Untaint) {
			left = append(left, u)
		}
	}
	d.Uncordon, d.Untaint = false, false
	d.Message += fmt.Sprintf("; the node keeps Drydock's %s while %s holds it", kindsOf(left), reason)
	return left
}

// takeBack takes back what an ended repair left on the Node, once nobody says any more to leave the Node alone.
func (s *State) takeBack(now time.Time) (Decision, bool) {
	r := s.Journal.Record
	if s.Journal.Malformed != nil || (r != nil && r.Phase != Exhausted && (r.Phase != Pending || r.Intent != nil)) {
		return Decision{}, false
	}
	i := slices.IndexFunc(s.Journal.History, func(e Entry) bool { return len(e.Left) > 0 })
	if i < 0 {
		return Decision{}, false
	}
	if reason, _ := s.wordOnNode(now); reason != "" {
		return Decision{}, false
	}
	e := s.Journal.History[i]
	d := Decision{Verb: Rest, LeftOf: e.ID, Message: fmt.Sprintf("repair %s ended at %s and left its %s on the node; Drydock takes that back now", e.ID, e.Ended.Format(time.RFC3339), kindsOf(e.Left))}
	d.undo(&Record{Undo: e.Left})
	return d, true
}

func kindsOf(undo []Undo) string {
	var out []string
	for _, u := range undo {
		if !slices.Contains(out, u.Kind) {
			out = append(out, u.Kind)
		}
	}
	return joined(out)
}

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

// wordOnNode is the guard that holds everything on the node, because a person or another system said so; empty: none.
func (s *State) wordOnNode(now time.Time) (Reason, string) {
	c := &Candidate{State: s, Now: now, Policy: &Policy{}}
	if reason, f := c.HeldBy([]Reason{ReasonExcluded, Paused, NodeLeaving}); f != nil {
		return reason, f.Message
	}
	// One whose time is over is taken off once the leases agree with this clock; until then it stands.
	for _, key := range []string{BreakGlassKey, PauseKey} {
		if _, ok := s.Node.Annotations[key]; ok {
			return Paused, key + " is still set"
		}
	}
	return "", ""
}
