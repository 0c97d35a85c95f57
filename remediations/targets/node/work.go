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

// work decides about a step that may be repeated, for example a drain, also after a change of
// leader. It stops as soon as a guard holds it, because a person may object at any moment.
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
		return s.timedOut(p, call.Why, now)
	case !now.Before(r.Deadline):
		why := "the step took too long"
		if r.Note != "" {
			why += ": " + r.Note
		} else if call != nil && call.Note != "" {
			why += ": " + call.Note
		}
		return s.timedOut(p, why, now)
	}
	d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: r.Deadline}
	if reason, f := s.inputsStale(call != nil, &d, now); f != nil {
		return s.interrupt(p, reason, f, now)
	} else if d.Verb == lifecycle.VerbLook {
		return d
	}
	c := s.acted(p, now)
	if s.Ledger == nil {
		known := *s.State
		known.Ledger = &ledger.Ledger{} // the ledger is unreadable at the moment, but it has the slot of this repair
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

// uncordonedAfterwards warns once if a person or a program uncordons a node that Drydock could not
// cure: pods may run there again.
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

// uncordoned ends the repair of a drained node that is not cordoned any more. That is a person's
// decision: pods may run there again, the next step would interrupt them, and another drain would
// contradict the person.
func (s *state) uncordoned(when string, now time.Time) lifecycle.Decision {
	d := s.End(remediations.OutcomeCancelled, "the node was uncordoned "+when, now)
	d.Ended.By = remediations.ByPerson
	return d
}

// refilled reports whether the drained node was uncordoned while a restart was verified. That need
// not be a person's decision: a system that installs a driver uncordons the node after each boot
// (admission.Drivers), and managedFields do not show who did it. Pods may have come back, so no
// other step may follow.
func (s *state) refilled() bool {
	r := s.Record
	return r.Phase == remediations.PhaseVerifying && r.Drained() && !s.Node.Spec.Unschedulable && s.Config.Remediation(remediations.LastDone(r).Name).Restarts
}

// inputsStale checks the age of the facts that a running step depends on. If this process runs the
// step (underway), it is held once they are older than MaxStaleness. Otherwise they are read again
// before the step is resumed.
func (s *state) inputsStale(underway bool, d *lifecycle.Decision, now time.Time) (remediations.Reason, *lifecycle.Finding) {
	oldest := now.Add(-s.Config.MaxStaleness)
	deaf := s.Snapshot == nil || !s.Snapshot.AskedAt.After(oldest)
	uncounted := s.Heartbeats == nil || !s.Heartbeats.ReadAt.After(oldest)
	d.Ask.Heartbeats = uncounted || now.Sub(s.Heartbeats.ReadAt) >= min(remediations.LookFor, s.Config.MaxStaleness/2)
	switch {
	case s.Ledger == nil && errors.Is(s.LedgerErr, ledger.ErrMalformed):
		return remediations.ReasonRecordMalformed, &lifecycle.Finding{Message: s.LedgerErr.Error(), Fleetwide: true}
	case !underway && (deaf || uncounted || s.Ledger == nil):
		d.Verb, d.Ask.Alerts, d.Message = lifecycle.VerbLook, deaf, fmt.Sprintf("reading the node's state before %s %s continues", s.Record.Step.Name, s.Node.Name)
	case deaf:
		return remediations.ReasonAlertUnconfirmed, lifecycle.Because("Drydock could not query Alertmanager for %s", text.Duration(s.Config.MaxStaleness))
	case uncounted:
		return remediations.ReasonBlind, lifecycle.Because("Drydock could not read the nodes' leases for %s", text.Duration(s.Config.MaxStaleness))
	default:
		asked, due := s.again(s.Snapshot.AskedAt, now)
		counted, _ := s.again(s.Heartbeats.ReadAt, now) // a pass at that time reads the leases again
		d.Ask.Alerts, d.Recheck = due, remediations.Earlier(d.Recheck, remediations.Earlier(asked, counted))
	}
	return "", nil
}

// again returns when facts must be read again. That is before they are too old, because a poll
// takes time, and its interval may be as long as MaxStaleness. If due is true, at is when they
// become too old.
func (s *state) again(answered, now time.Time) (at time.Time, due bool) {
	at = answered.Add(max(s.Config.MaxStaleness/2, s.Config.MaxStaleness-remediations.LookFor))
	if now.Before(at) {
		return at, false
	}
	return answered.Add(s.Config.MaxStaleness), true
}

// interrupt stops the step. It starts again when no guard holds it.
func (s *state) interrupt(p *remediations.Policy, reason remediations.Reason, f *lifecycle.Finding, now time.Time) lifecycle.Decision {
	r := s.Record.Clone()
	r.Phase, r.Since, r.Deadline, r.Note = remediations.PhasePending, remediations.Instant(now), remediations.Instant(now.Add(remediations.PendingFor)), ""
	r.Hold = lifecycle.NewHold(reason, f, now)
	r.Also = s.also(r)
	d := lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: reason, Message: f.Message, Fleetwide: f.Fleetwide || reason.Fleetwide(), Concern: f.Concern, Policy: p, Record: r}
	if f.Until.After(now) {
		d.Recheck = f.Until
	}
	return d
}

// taken returns how long the step has run, without the time while it was held. Each interruption
// counts as at least one second, so that their number is bounded.
func (s *state) taken(r *remediations.Record, step remediations.StepRef) time.Duration {
	if !r.Intent.Of(r, step) || !s.interrupted(r) {
		return 0
	}
	return time.Duration(r.Intent.SpentSeconds)*time.Second + max(time.Second, r.Since.Sub(r.Intent.At).Truncate(time.Second))
}

func (s *state) interrupted(r *remediations.Record) bool {
	return !s.Config.Remediation(r.Step.Name).Once && r.Intent.Outcome == ""
}

// timedOut ends a step that was not completed in time. If the node is not Ready, the plan
// continues, because the next step cannot make the node's state worse.
func (s *state) timedOut(p *remediations.Policy, why string, now time.Time) lifecycle.Decision {
	r := s.Record
	if step, there := p.StepAt(r.Step); (there && step.ContinueOnTimeout) || !remediations.Ready(s.Node) {
		return s.after(remediations.CallRefused, why, now)
	}
	next := r.Clone()
	next.Intent.Outcome, next.Intent.Why = remediations.CallRefused, text.Line(why, 300)
	return of(s.State, next).exhaust(p, now)
}

func (s *state) after(outcome remediations.CallOutcome, why string, now time.Time) lifecycle.Decision {
	r := s.Record.Clone()
	r.Intent.Outcome, r.Intent.Why, r.Note = outcome, text.Line(why, 300), ""
	return of(s.State, r).Proceed(now)
}
