package node

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// lets reports whether the Node's machine is certainly gone, and the Node is not yet marked.
func (s *state) lets() bool {
	r, machine := s.Record, s.answers().Machine
	return machine != nil && machine.MachineGone && string(s.Node.UID) == r.Intent.UID && !remediations.Ready(s.Node) && !tainted(r)
}

// letGo marks the Node of a replaced machine as out of service, so that Kubernetes releases the
// machine's volumes and pods. It is a side effect like any other: it needs fresh facts, and all
// guards are asked.
func (s *state) letGo(d *lifecycle.Decision, now time.Time) {
	r, p := s.Record, d.Policy
	if p == nil || p.Mode == remediations.ModeOff || !p.Takes(s.Node) {
		s.note(d, "its machine is gone; the node is not marked as out of service, because policy %s is off or does not take it", r.Policy)
		return
	}
	oldest := now.Add(-s.Config.MaxStaleness)
	if s.Heartbeats == nil || !s.Heartbeats.ReadAt.After(oldest) {
		d.Ask.Heartbeats = true
	}
	if s.Snapshot == nil || !s.Snapshot.AskedAt.After(oldest) || d.Ask.Heartbeats || s.Ledger == nil {
		return // the facts that it depends on are read again
	}
	if reason, f := s.acted(p, now).HeldBy(nil); f != nil {
		s.note(d, "its machine is gone; the node is not marked as out of service, because %s holds it", reason)
		d.Message += ": " + f.Message
		if f.Until.After(now) {
			d.Recheck = remediations.Earlier(d.Recheck, f.Until)
		}
		return
	}
	d.Taint, d.Record = true, r.Clone()
	d.Record.Note = ""
	d.Record.Undo = append(d.Record.Undo, remediations.Undo{Kind: remediations.UndoTaint, Key: remediations.OutOfServiceTaint, At: remediations.Instant(now)})
	d.Message = "its machine is gone: the node is marked out of service, so that its volumes and pods are released"
}

// note reports what blocks a step under way. It updates the record if the message is new.
func (s *state) note(d *lifecycle.Decision, format string, args ...any) {
	d.Message = fmt.Sprintf(format, args...)
	if r := s.Record; r.Note != text.Line(d.Message, 400) {
		d.Record = r.Clone()
		d.Record.Note = text.Line(d.Message, 400)
	}
}

func tainted(r *remediations.Record) bool {
	for _, u := range r.Undo {
		if u.Kind == remediations.UndoTaint && u.Key == remediations.OutOfServiceTaint {
			return true
		}
	}
	return false
}
