package remediations

import (
	"fmt"
	"time"
)

// OutOfServiceTaint is Kubernetes' mark for a machine that is off for good: its pods are deleted and its volumes detached
// without waiting for its kubelet. On a machine that still runs it loses data.
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

// letGo marks the Node of a machine that its provider has replaced as out of service, so that what was attached to the
// machine is let go. It is a side effect like any other: it rests on a fresh look, and every guard is asked.
func (s *State) letGo(d *Decision, now time.Time) {
	r, p, machine := s.Journal.Record, d.Policy, s.answers().Machine
	if machine == nil || !machine.MachineGone || string(s.Node.UID) != r.Intent.UID || ready(s.Node) || r.tainted() {
		return
	}
	if p == nil || p.Mode == ModeOff || !p.takes(s.Node) {
		s.note(d, "its machine is gone; the node is not marked as out of service, because policy %s is off or does not take it", r.Policy)
		return
	}
	oldest := now.Add(-s.Config.MaxStaleness)
	if s.Heartbeats == nil || !s.Heartbeats.ReadAt.After(oldest) {
		d.Ask.Heartbeats = true
	}
	if s.Word == nil || !s.Word.AskedAt.After(oldest) || d.Ask.Heartbeats || s.Ledger == nil {
		return // what it would rest on is read again
	}
	c := &Candidate{
		State: s, Now: now, Policy: p, Step: r.Step, Alert: s.AlertBy(r.Cause.Alert), request: r.Cause.Request,
		Verdict: s.verdictOn(r.Cause), Repair: r.ID, Own: r.ID,
	}
	if reason, f := c.hold(); f != nil {
		s.note(d, "its machine is gone; the node is not marked as out of service, because %s holds it", reason)
		d.Message += ": " + f.Message
		if f.Until.After(now) {
			d.Recheck = Earlier(d.Recheck, f.Until)
		}
		return
	}
	d.Taint, d.Record = true, r.Clone()
	d.Record.Note = ""
	d.Record.Undo = append(d.Record.Undo, Undo{Kind: UndoTaint, Key: OutOfServiceTaint, At: Instant(now)})
	d.Message = "its machine is gone: the node is marked out of service, so that volumes and pods are let go"
}

// note says what is in the way of a step under way, on the record where it is new there.
func (s *State) note(d *Decision, format string, args ...any) {
	d.Message = fmt.Sprintf(format, args...)
	if r := s.Journal.Record; r.Note != clip(d.Message, 400) {
		d.Record = r.Clone()
		d.Record.Note = clip(d.Message, 400)
	}
}

func (r *Record) tainted() bool {
	for _, u := range r.Undo {
		if u.Kind == UndoTaint && u.Key == OutOfServiceTaint {
			return true
		}
	}
	return false
}
