package node

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// mayRelease requires that the machine is certainly gone or switched off.
func (s *state) mayRelease(now time.Time) bool {
	r, machine := s.Record, s.answers().Machine
	return machine != nil && machine.MachineGone && string(s.Node.UID) == r.Intent.UID && !remediations.Ready(s.Node) && marked(r.Undo) == nil && (!s.powersOff() || s.off(machine, now))
}

// powersOff is about the last issued step.
func (s *state) powersOff() bool {
	return s.Config.Remediation(remediations.LastDone(s.Record).Name).PowersOff
}

// off does not accept an old answer of the provider, because a machine may be switched on at any
// time.
func (s *state) off(machine *remediations.Replacement, now time.Time) bool {
	boot, age := s.Record.Intent.BootID, now.Sub(machine.At)
	return boot != "" && s.Node.Status.NodeInfo.BootID == boot && age >= 0 && age <= surveyFor
}

// letGo sets the out-of-service taint, because the machine is gone or off. Kubernetes then releases
// its volumes and pods. As before a step, the facts must be fresh, and no guard may hold this.
func (s *state) letGo(d *lifecycle.Decision, now time.Time) {
	r, p, is, boot := s.Record, d.Policy, "gone", ""
	if s.powersOff() {
		is, boot = "off", r.Intent.BootID
	}
	if p == nil || p.Mode == remediations.ModeOff || !p.Takes(s.Node) {
		s.note(d, "the machine is %s, but Drydock does not mark the node as out of service, because policy %s is off or does not apply to the node", is, r.Policy)
		return
	}
	oldest := now.Add(-s.Config.MaxStaleness)
	if s.Heartbeats == nil || !s.Heartbeats.ReadAt.After(oldest) {
		d.Ask.Heartbeats = true
	}
	if s.Snapshot == nil || !s.Snapshot.AskedAt.After(oldest) || d.Ask.Heartbeats || s.Ledger == nil {
		return // these facts are read again first
	}
	if reason, f := s.acted(p, now).HeldBy(nil); f != nil {
		s.note(d, "the machine is %s, but Drydock does not mark the node as out of service, because of the hold %s", is, reason)
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
		d.Record.Deadline, d.Recheck = remediations.Instant(now), now // the attempt needs no more time
		if earlier := marked(s.Journal.ToUndo()); earlier != nil {
			d.Taint, mark.At = false, earlier.At // an earlier repair has set the taint, and a person may have removed it since
		}
	}
	d.Record.Undo = append(d.Record.Undo, mark)
	d.Message = fmt.Sprintf("the machine is %s: Drydock marks the node as out of service, so that Kubernetes releases its volumes and pods", is)
}

// backInService removes the out-of-service taint once the machine has booted again and its node is
// Ready. The end of a repair removes it, too.
func (s *state) backInService(d *lifecycle.Decision, now time.Time) {
	r, mark := s.Record, s.Record.SwitchedOff()
	inFlight := d.Verb == lifecycle.VerbRest || d.Verb == lifecycle.VerbHold || d.Verb == lifecycle.VerbWait
	if mark == nil || !inFlight || !mark.Due(s.Node) || d.Superseded != nil || (d.Record != nil && d.Record.ID != r.ID) {
		return
	}
	if reason, _ := s.markOnNode(now); reason != "" {
		return
	}
	if d.Record == nil {
		d.Record = r.Clone()
	}
	d.Untaint = true
	d.Record.Undo = slices.DeleteFunc(d.Record.Undo, func(u remediations.Undo) bool { return u == *mark })
}

// switchedOff returns what a person must do about a machine that the repair has switched off, or an
// empty text.
func switchedOff(r *remediations.Record) string {
	if r.SwitchedOff() == nil {
		return ""
	}
	return fmt.Sprintf("; Drydock switched it off, and its pods and volumes were released. Repair the machine and switch it on: Drydock removes the taint %s when the node is Ready again", remediations.OutOfServiceTaint)
}

// note writes into the record what blocks the step, if that is new.
func (s *state) note(d *lifecycle.Decision, format string, args ...any) {
	d.Message = fmt.Sprintf(format, args...)
	if r := s.Record; r.Note != text.Line(d.Message, 400) {
		d.Record = r.Clone()
		d.Record.Note = text.Line(d.Message, 400)
	}
}

func marked(changes []remediations.Undo) *remediations.Undo {
	i := slices.IndexFunc(changes, func(u remediations.Undo) bool {
		return u.Kind == remediations.UndoTaint && u.Key == remediations.OutOfServiceTaint
	})
	if i < 0 {
		return nil
	}
	return &changes[i]
}
