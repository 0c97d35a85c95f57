package node

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// reset does what a person requested with drydock.dev/reset. It waits while the ledger is not
// available. If the record of the node's own repair is unreadable, reset deletes only that record.
//
// Otherwise it forgets all exhausted repairs of the node, of its mesh location's leader and of its
// sidecars. Cancelled repairs and stopped policies of this node are allowed again. ok is false if
// there is nothing to reset, or if the node is under repair.
func (s *state) reset(now time.Time) (d lifecycle.Decision, ok bool) {
	r := s.Record
	switch {
	case !s.asksReset():
		return d, false
	case s.Journal.CannotRead(remediations.NodeRepairKey):
		return s.dropMalformed(now), true
	case r != nil && r.Phase.InFlight():
		return d, false
	}
	var said []string
	if d.Verb = lifecycle.VerbRest; r != nil && r.Phase == remediations.PhaseExhausted {
		d.Verb, d.Allow, d.Message = lifecycle.VerbReset, []string{r.Policy}, fmt.Sprintf("the exhausted repair %s was forgotten", r.ID)
		if left := s.undone(&d, r.Undo, now); left != nil {
			d.LeftOf, d.Left = r.ID, left
		}
		said = append(said, d.Message)
		for _, e := range s.Journal.History {
			e.Reset = true
			d.History = append(d.History, e)
		}
	} else if d.Allow = s.stoppedHere(); len(d.Allow) > 0 {
		said = append(said, "the stopped policies of this node start again: "+strings.Join(d.Allow, ", "))
	}
	if count, had, lost := s.Record.LostGPUs(s.Node, s.Ledger.GPUsOf(s.Node)); lost {
		d.FewerGPUs = true
		if d.Verb != lifecycle.VerbReset && r != nil && r.Intent != nil { // the proof of the cure compares with this number
			d.Record = r.Clone()
			d.Record.Intent.GPUs = min(r.Intent.GPUs, count)
		}
		said = append(said, fmt.Sprintf("Drydock expects %d GPUs of the machine from now on, not %d", count, had))
	}
	said = append(said, s.resetCancels(&d, now)...)
	for _, key := range slices.Sorted(maps.Keys(s.Journal.Records)) {
		other := s.Journal.Records[key]
		if other.Phase != remediations.PhaseExhausted {
			continue
		}
		d.Prune = append(d.Prune, key)
		of := "a sidecar"
		if key == remediations.LocationKey {
			of = "the leader of location " + other.Location
			if !slices.Contains(d.Allow, other.Policy) {
				d.Allow = append(d.Allow, other.Policy)
			}
		}
		said = append(said, fmt.Sprintf("the exhausted repair %s of %s was forgotten", other.ID, of))
	}
	d.Message = text.Line(strings.Join(said, "; "), 900)
	return d, len(said) > 0
}

// resetCancels allows repairs again that a person cancelled, and returns a message for each.
func (s *state) resetCancels(d *lifecycle.Decision, now time.Time) (said []string) {
	for _, a := range s.Journal.Alerts {
		by := s.CancelOf(&a, now)
		if by == nil {
			continue
		}
		said = append(said, fmt.Sprintf("the cancel of repair %s was forgotten", by.ID))
		d.Uncancel = append(d.Uncancel, a.Fingerprint)
		if a.Cancelled != nil {
			a.Cancelled = nil
			d.Alerts = append(d.Alerts, a)
		}
	}
	if len(said) == 0 || d.History != nil { // the whole history was reset already
		return said
	}
	for _, e := range s.Journal.History {
		e.Reset = e.Reset || e.By == remediations.ByPerson && slices.Contains(d.Uncancel, e.Cause)
		d.History = append(d.History, e)
	}
	return said
}

// asksReset is false while the reset cannot be done.
func (s *state) asksReset() bool {
	v, asked := s.Node.Annotations[remediations.ResetKey]
	return asked && s.Ledger != nil && remediations.ParseReset(v) == nil
}

// dropMalformed deletes the unreadable record of the node's own repair. The beginning of its text
// goes into the history.
func (s *state) dropMalformed(now time.Time) lifecycle.Decision {
	bytes := s.Node.Annotations[remediations.NodeRepairKey]
	d := lifecycle.Decision{
		Verb: lifecycle.VerbReset, Message: "a record that could not be read was dropped: " + text.Line(bytes, 900), Ended: s.unreadable(bytes, now),
	}
	// The record is lost. But the Node shows who set its cordon and its announcements, so Drydock
	// can still remove its own.
	done := remediations.Record{}
	if s.Node.Spec.Unschedulable {
		done.Undo = append(done.Undo, remediations.Undo{Kind: remediations.UndoCordon, At: remediations.Instant(now)})
	}
	for _, key := range s.Config.Announce {
		if _, there := s.Node.Annotations[key]; there {
			done.Undo = append(done.Undo, remediations.Undo{Kind: remediations.UndoAnnotation, Key: key, At: remediations.Instant(now)})
		}
	}
	d.Ended.Left = s.undone(&d, done.Undo, now)
	return d
}

// dropUnreadable deletes unreadable records of sidecars and of the mesh leader on a person's reset.
// Readable ones stay.
func (s *state) dropUnreadable(d *lifecycle.Decision, now time.Time) {
	if !s.asksReset() {
		return
	}
	for _, key := range s.Journal.Unreadable {
		if key == remediations.NodeRepairKey {
			continue
		}
		d.Prune = append(d.Prune, key)
		if d.Ended == nil {
			d.Ended = s.unreadable(s.Node.Annotations[key], now)
		}
	}
}

func (s *state) unreadable(bytes string, now time.Time) *remediations.Entry {
	return &remediations.Entry{
		ID: "unreadable", Outcome: remediations.OutcomeCancelled, Steps: remediations.Attempts{},
		Began: remediations.Instant(now), Ended: remediations.Instant(now), Why: text.Line(bytes, 1024),
	}
}

// stoppedHere returns the stopped policies of the node's repair and alerts or, if there are none,
// those that select the node. So a person can start a policy again after its last alert has ended.
func (s *state) stoppedHere() []string {
	if s.Ledger == nil {
		return nil
	}
	var out []string
	stopped := func(policy string) {
		if (s.Ledger.Failing(policy) || s.Ledger.Status.Stopped[policy] != "") && !slices.Contains(out, policy) {
			out = append(out, policy)
		}
	}
	if r := s.Record; r != nil {
		stopped(r.Policy)
	}
	for _, a := range s.Journal.Alerts {
		stopped(a.Policy)
	}
	if len(out) > 0 {
		return out
	}
	for _, all := range []iter.Seq[string]{maps.Keys(s.Ledger.Status.Stopped), maps.Keys(s.Ledger.Status.Exhausted)} {
		for _, policy := range slices.Sorted(all) {
			if p := s.Config.PolicyOf(policy, s.Node); p == nil || p.Takes(s.Node) {
				stopped(policy)
			}
		}
	}
	return out
}
