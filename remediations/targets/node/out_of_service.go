package node

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// lets reports whether the Node's machine is certainly gone or switched off, and the Node is not
// yet marked.
func (s *state) lets(now time.Time) bool {
	r, machine := s.Record, s.answers().Machine
	return machine != nil && machine.MachineGone && string(s.Node.UID) == r.Intent.UID && !remediations.Ready(s.Node) && marked(r.Undo) == nil && (!s.powersOff() || s.off(machine, now))
}

// powersOff reports whether the step that was issued last only switches the machine off.
func (s *state) powersOff() bool {
	return s.Config.Remediation(remediations.LastDone(s.Record).Name).PowersOff
}

// off reports whether the machine is off now, and in the boot that the step was to end. A machine
// that is off may be switched on at any time, so an old answer proves nothing.
func (s *state) off(machine *remediations.Replacement, now time.Time) bool {
	boot, age := s.Record.Intent.BootID, now.Sub(machine.At)
	return boot != "" && s.Node.Status.NodeInfo.BootID == boot && age >= 0 && age <= surveyFor
}

// letGo marks the Node of a machine that is gone or off as out of service, so that Kubernetes
// releases the machine's volumes and pods. It is a side effect like any other: it needs fresh
// facts, and all guards are asked.
func (s *state) letGo(d *lifecycle.Decision, now time.Time) {
	r, p, is, boot := s.Record, d.Policy, "gone", ""
	if s.powersOff() {
		is, boot = "off", r.Intent.BootID
	}
	if p == nil || p.Mode == remediations.ModeOff || !p.Takes(s.Node) {
		s.note(d, "its machine is %s; the node is not marked as out of service, because policy %s is off or does not take it", is, r.Policy)
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
		s.note(d, "its machine is %s; the node is not marked as out of service, because %s holds it", is, reason)
		d.Message += ": " + f.Message
		if f.Until.After(now) {
			d.Recheck = remediations.Earlier(d.Recheck, f.Until)
		}
		return
	}
	d.Taint, d.Record = true, r.Clone()
	d.Record.Note = ""
	mark := remediations.Undo{Kind: remediations.UndoTaint, Key: remediations.OutOfServiceTaint, At: remediations.Instant(now), BootID: boot}
	if s.powersOff() {
		d.Record.Deadline, d.Recheck = remediations.Instant(now), now // nothing more is awaited of the attempt
		if earlier := marked(s.Journal.ToUndo()); earlier != nil {
			d.Taint, mark.At = false, earlier.At // an earlier repair has set it, and a person may have removed it since
		}
	}
	d.Record.Undo = append(d.Record.Undo, mark)
	d.Message = fmt.Sprintf("its machine is %s: the node is marked out of service, so that its volumes and pods are released", is)
}

// backInService removes the mark of a machine that Drydock switched off, once the machine has
// booted again and its node is Ready. The end of a repair removes the mark, too.
func (s *state) backInService(d *lifecycle.Decision, now time.Time) {
	r, mark := s.Record, s.Record.SwitchedOff()
	inFlight := d.Verb == lifecycle.VerbRest || d.Verb == lifecycle.VerbHold || d.Verb == lifecycle.VerbWait
	if mark == nil || !inFlight || !mark.Due(s.Node) || d.Superseded != nil || (d.Record != nil && d.Record.ID != r.ID) {
		return
	}
	if reason, _ := s.wordOnNode(now); reason != "" {
		return
	}
	if d.Record == nil {
		d.Record = r.Clone()
	}
	d.Untaint = true
	d.Record.Undo = slices.DeleteFunc(d.Record.Undo, func(u remediations.Undo) bool { return u == *mark })
}

// switchedOff returns what a person must know of a machine that the repair has switched off, to
// follow what is not cured.
func switchedOff(r *remediations.Record) string {
	if r.SwitchedOff() == nil {
		return ""
	}
	return fmt.Sprintf("; Drydock switched it off, and its pods and volumes were released. Repair the machine and switch it on: Drydock removes the taint %s when the node is Ready again", remediations.OutOfServiceTaint)
}

// note reports what blocks a step under way. It updates the record if the message is new.
func (s *state) note(d *lifecycle.Decision, format string, args ...any) {
	d.Message = fmt.Sprintf(format, args...)
	if r := s.Record; r.Note != text.Line(d.Message, 400) {
		d.Record = r.Clone()
		d.Record.Note = text.Line(d.Message, 400)
	}
}

// marked returns the out-of-service mark among the changes; nil: there is none.
func marked(changes []remediations.Undo) *remediations.Undo {
	i := slices.IndexFunc(changes, func(u remediations.Undo) bool {
		return u.Kind == remediations.UndoTaint && u.Key == remediations.OutOfServiceTaint
	})
	if i < 0 {
		return nil
	}
	return &changes[i]
}
