package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// work decides about a repeatable step that is under way, for example a drain. Every new leader may
// start the step again. The step stops as soon as a guard holds it, because a person may object to
// each of its side effects.
func (s *state) work(now time.Time) lifecycle.Decision {
	r, p := s.Record, s.policy()
	if p == nil || p.Mode == remediations.ModeOff {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !p.Takes(s.Node) {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s no longer selects this node: the node's labels or the policy's nodeSelector have changed", r.Policy), now)
	}
	if !s.Node.Spec.Unschedulable { // the node was cordoned when the step began
		return s.uncordoned("during its "+r.Step.Name, now)
	}
	call := s.Call
	if call != nil && call.IntentID != r.Intent.ID {
		call = nil
	}
	switch {
	case call != nil && call.Outcome == remediations.CallAccepted:
		return s.after(remediations.CallAccepted, "", now)
	case call != nil && call.Outcome != "":
		return s.worn(p, call.Why, now)
	case !now.Before(r.Deadline):
		why := "it took too long"
		if r.Note != "" {
			why += ": " + r.Note
		} else if call != nil && call.Note != "" {
			why += ": " + call.Note
		}
		return s.worn(p, why, now)
	}
	d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: r.Deadline}
	if reason, f := s.unheard(call != nil, &d, now); f != nil {
		return s.interrupt(p, reason, f, now)
	} else if d.Verb == lifecycle.VerbLook {
		return d
	}
	c := s.acted(p, now)
	if s.Ledger == nil {
		known := *s.State
		known.Ledger = &ledger.Ledger{} // unreadable for a moment: the slot was taken, and stays taken
		c.State = &known
	}
	if reason, f := c.HeldBy(nil); f != nil {
		return s.interrupt(p, reason, f, now)
	}
	if c.Unwitnessed() {
		d.Ask.Witness = true
		if call == nil {
			d.Verb, d.Message = lifecycle.VerbLook, fmt.Sprintf("reading the witness before %s %s continues", r.Step.Name, s.Node.Name)
			return d
		}
	}
	if call == nil {
		d.Signs = c.Signs()
		d.Verb, d.Message = lifecycle.VerbResume, fmt.Sprintf("%s %s continues", r.Step.Name, s.Node.Name)
		return d
	}
	d.Message = call.Note
	if blocked := text.Line(call.Blocked, 400); blocked != r.Note {
		d.Record = r.Clone()
		d.Record.Note = blocked
	}
	return d
}

// uncordonedAfterwards warns once that pods may be scheduled to a node that Drydock could not cure.
// The policy cordoned the node after its last step, and someone uncordoned it. The record forgets
// the cordon together with the warning.
func (s *state) uncordonedAfterwards(d *lifecycle.Decision) {
	r := s.Record
	if r == nil || r.Phase != remediations.PhaseExhausted || d.Verb != lifecycle.VerbRest || d.Record != nil || s.Node.Spec.Unschedulable {
		return
	}
	cordon := func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon }
	if !slices.ContainsFunc(r.Undo, cordon) {
		return
	}
	d.Record = r.Clone()
	d.Record.Undo = slices.DeleteFunc(d.Record.Undo, cordon)
	notice(d, lifecycle.NodeUncordoned, "the node was uncordoned, so new pods may run on it, but repair %s by policy %s did not cure the node. Cordon the node again: kubectl cordon %s. Or, if the node is fixed, set %s=true", r.ID, r.Policy, s.Node.Name, remediations.ResetKey)
}

// uncordoned ends the repair of a node that Drydock drained, because the uncordon shows that pods
// are wanted on it. It counts as a person's decision, like a cancel: another drain would contradict
// it, and the next step would hit the pods.
func (s *state) uncordoned(when string, now time.Time) lifecycle.Decision {
	d := s.End(remediations.OutcomeCancelled, "the node was uncordoned "+when, now)
	d.Ended.By = remediations.ByPerson
	return d
}

// refilled reports whether the drained node was uncordoned while Drydock verified a step that
// restarts the machine. A system that installs a driver uncordons the node after each boot
// (admission.Drivers), and an uncordon leaves no entry in managedFields. So it may not be a
// person's decision. Pods may be back in any case, so no other step may follow.
func (s *state) refilled() bool {
	r := s.Record
	return r.Phase == remediations.PhaseVerifying && r.Drained() && !s.Node.Spec.Unschedulable && s.Config.Remediation(remediations.LastDone(r).Name).Restarts
}

// unheard checks whether the facts behind a step under way are fresh enough. If another process
// began the step, the facts are read before it is resumed. If this process runs it, the step ends
// when no answer came for too long.
func (s *state) unheard(underway bool, d *lifecycle.Decision, now time.Time) (remediations.Reason, *lifecycle.Finding) {
	oldest := now.Add(-s.Config.MaxStaleness)
	deaf := s.Snapshot == nil || !s.Snapshot.AskedAt.After(oldest)
	uncounted := s.Heartbeats == nil || !s.Heartbeats.ReadAt.After(oldest)
	d.Ask.Heartbeats = uncounted || now.Sub(s.Heartbeats.ReadAt) >= min(remediations.LookFor, s.Config.MaxStaleness/2)
	switch {
	case s.Ledger == nil && errors.Is(s.LedgerErr, ledger.ErrMalformed):
		return remediations.ReasonRecordMalformed, &lifecycle.Finding{Message: s.LedgerErr.Error(), Fleetwide: true}
	case !underway && (deaf || uncounted || s.Ledger == nil):
		d.Verb, d.Ask.Alerts, d.Message = lifecycle.VerbLook, deaf, fmt.Sprintf("looking before %s %s continues", s.Record.Step.Name, s.Node.Name)
	case deaf:
		return remediations.ReasonAlertUnconfirmed, lifecycle.Because("no Alertmanager has been asked for %s", text.Duration(s.Config.MaxStaleness))
	case uncounted:
		return remediations.ReasonBlind, lifecycle.Because("the nodes' leases could not be counted for %s", text.Duration(s.Config.MaxStaleness))
	default:
		asked, due := s.again(s.Snapshot.AskedAt, now)
		counted, _ := s.again(s.Heartbeats.ReadAt, now) // a pass at that time reads the leases
		d.Ask.Alerts, d.Recheck = due, remediations.Earlier(d.Recheck, remediations.Earlier(asked, counted))
	}
	return "", nil
}

// again returns when an answer must be requested again and, when that is due, when the answer is
// too old. The poll may be as rare as MaxStaleness, and takes time itself, so the request comes
// early enough.
func (s *state) again(answered, now time.Time) (at time.Time, due bool) {
	at = answered.Add(max(s.Config.MaxStaleness/2, s.Config.MaxStaleness-remediations.LookFor))
	if now.Before(at) {
		return at, false
	}
	return answered.Add(s.Config.MaxStaleness), true
}

// interrupt stops the step: it is held, and starts again when nothing holds it.
func (s *state) interrupt(p *remediations.Policy, reason remediations.Reason, f *lifecycle.Finding, now time.Time) lifecycle.Decision {
	r := s.Record.Clone()
	r.Phase, r.Since, r.Deadline, r.Note = remediations.PhasePending, remediations.Instant(now), remediations.Instant(now.Add(remediations.PendingFor)), ""
	r.Hold = lifecycle.NewHold(reason, f, now)
	r.Also = s.also(r)
	d := lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: reason, Message: f.Message, Fleetwide: f.Fleetwide || reason.Fleetwide(), Policy: p, Record: r}
	if f.Until.After(now) {
		d.Recheck = f.Until
	}
	return d
}

// taken returns how long the step that now continues has already taken. The time while it was held
// does not count. Each interruption counts as one second at least, so that their number is bounded.
func (s *state) taken(r *remediations.Record, step remediations.StepRef) time.Duration {
	if !r.Intent.Of(r, step) || !s.interrupted(r) {
		return 0
	}
	return time.Duration(r.Intent.SpentSeconds)*time.Second + max(time.Second, r.Since.Sub(r.Intent.At).Truncate(time.Second))
}

// interrupted reports whether the record's intent is of a repeatable step that was not completed.
func (s *state) interrupted(r *remediations.Record) bool {
	return !s.Config.Remediation(r.Step.Name).Once && r.Intent.Outcome == ""
}

// worn ends a step that was not completed in time, or cannot be. If the node is not Ready, the plan
// continues, because the next step can cost the node nothing that it has not already lost.
func (s *state) worn(p *remediations.Policy, why string, now time.Time) lifecycle.Decision {
	r := s.Record
	if step, there := p.StepAt(r.Step); (there && step.ContinueOnTimeout) || !remediations.Ready(s.Node) {
		return s.after(remediations.CallRefused, why, now)
	}
	next := r.Clone()
	next.Intent.Outcome, next.Intent.Why = remediations.CallRefused, text.Line(why, 300)
	return of(s.State, next).exhaust(p, now)
}

// after continues the plan when a repeatable step has ended.
func (s *state) after(outcome remediations.CallOutcome, why string, now time.Time) lifecycle.Decision {
	r := s.Record.Clone()
	r.Intent.Outcome, r.Intent.Why, r.Note = outcome, text.Line(why, 300), ""
	return of(s.State, r).Proceed(now)
}
