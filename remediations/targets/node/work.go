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

// work decides about a repeatable step that is under way, such as a drain. It may be begun again by whoever leads, and
// ends as soon as a guard has something against it: each of its side effects is one that a person might mind.
func (s *state) work(now time.Time) lifecycle.Decision {
	r, p := s.Record, s.policy()
	if p == nil || p.Mode == remediations.ModeOff {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !p.Takes(s.Node) {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s does not take this node any more: its labels have changed", r.Policy), now)
	}
	if !s.Node.Spec.Unschedulable { // it was cordoned when the step began, by whomever
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
		known.Ledger = &ledger.Ledger{} // not readable for a moment: the slot was taken, and stays taken
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

// uncordonedAfterwards warns once that pods may come to a node that Drydock could not cure: its policy cordoned the node when the plan
// ran out, and somebody uncordoned it. The record forgets the cordon with the warning.
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

// uncordoned ends the repair of a node that Drydock emptied, since somebody wants pods on it. It is a person's word like a
// cancel: to drain the node again would be against it, and to go on without would take the pods along.
func (s *state) uncordoned(when string, now time.Time) lifecycle.Decision {
	d := s.End(remediations.OutcomeCancelled, "the node was uncordoned "+when, now)
	d.Ended.By = remediations.ByPerson
	return d
}

// refilled says that the drained node was uncordoned while Drydock verified a step that restarts the machine. A system that installs a
// driver uncordons the node after each boot (admission.Drivers), and an uncordon leaves no entry in managedFields. So it is not known
// to be a person's word. Pods may be back in any case, so no other step may follow.
func (s *state) refilled() bool {
	r := s.Record
	return r.Phase == remediations.PhaseVerifying && r.Drained() && !s.Node.Spec.Unschedulable && s.Config.Remediation(remediations.LastDone(r).Name).Restarts
}

// unheard asks whether what a step under way rests on is young enough. One that is not being done, since another process
// began it, is looked after first; one that is ends when nobody has answered for too long.
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
		counted, _ := s.again(s.Heartbeats.ReadAt, now) // a pass at that time has them read
		d.Ask.Alerts, d.Recheck = due, remediations.Earlier(d.Recheck, remediations.Earlier(asked, counted))
	}
	return "", nil
}

// again is when an answer of that time is to be asked for anew, and, where that is due, when it is too old. The poll may be as rare as an
// answer may be old, and the next one takes a while: it is asked for in time to be there.
func (s *state) again(answered, now time.Time) (at time.Time, due bool) {
	at = answered.Add(max(s.Config.MaxStaleness/2, s.Config.MaxStaleness-remediations.LookFor))
	if now.Before(at) {
		return at, false
	}
	return answered.Add(s.Config.MaxStaleness), true
}

// interrupt puts the step back: it is held, and begins again when nothing holds it any more.
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

// taken is how long the step that goes on now has taken already. The time for which it was held does not count, but each
// interruption counts for a second at least, so that there is no end of them.
func (s *state) taken(r *remediations.Record, step remediations.StepRef) time.Duration {
	if !r.Intent.Of(r, step) || !s.interrupted(r) {
		return 0
	}
	return time.Duration(r.Intent.SpentSeconds)*time.Second + max(time.Second, r.Since.Sub(r.Intent.At).Truncate(time.Second))
}

// interrupted says that the record's intent is of a repeatable step that did not come to its end.
func (s *state) interrupted(r *remediations.Record) bool {
	return !s.Config.Remediation(r.Step.Name).Once && r.Intent.Outcome == ""
}

// worn ends a step that did not come to its end in time, or cannot. A node that is not Ready loses nothing by the next
// step that it has not lost already.
func (s *state) worn(p *remediations.Policy, why string, now time.Time) lifecycle.Decision {
	r := s.Record
	if step, there := p.StepAt(r.Step); (there && step.ContinueOnTimeout) || !remediations.Ready(s.Node) {
		return s.after(remediations.CallRefused, why, now)
	}
	next := r.Clone()
	next.Intent.Outcome, next.Intent.Why = remediations.CallRefused, text.Line(why, 300)
	return of(s.State, next).exhaust(p, now)
}

// after goes on with the plan when a repeatable step is over.
func (s *state) after(outcome remediations.CallOutcome, why string, now time.Time) lifecycle.Decision {
	r := s.Record.Clone()
	r.Intent.Outcome, r.Intent.Why, r.Note = outcome, text.Line(why, 300), ""
	return of(s.State, r).proceed(now)
}
