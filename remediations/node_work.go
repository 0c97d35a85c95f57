package remediations

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// work decides about a repeatable step that is under way, such as a drain. It may be begun again by whoever leads, and
// ends as soon as a guard has something against it: each of its side effects is one that a person might mind.
func (s *State) work(now time.Time) Decision {
	r, p := s.Journal.Record, s.policy()
	if p == nil || p.Mode == ModeOff {
		return s.End(Cancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !p.takes(s.Node) {
		return s.End(Cancelled, fmt.Sprintf("policy %s does not take this node any more: its labels have changed", r.Policy), now)
	}
	if !s.Node.Spec.Unschedulable { // it was cordoned when the step began, by whomever
		return s.uncordoned("during its "+r.Step.Name, now)
	}
	call := s.Call
	if call != nil && call.IntentID != r.Intent.ID {
		call = nil
	}
	switch {
	case call != nil && call.Outcome == CallAccepted:
		return s.after(CallAccepted, "", now)
	case call != nil && call.Outcome != "":
		return s.worn(p, call.Why, now)
	case !now.Before(r.Deadline):
		why := "it took too long"
		if r.Note != "" {
			why += ": " + r.Note
		}
		return s.worn(p, why, now)
	}
	d := Decision{Verb: Wait, Policy: p, Recheck: r.Deadline}
	if reason, f := s.unheard(call != nil, &d, now); f != nil {
		return s.interrupt(p, reason, f, now)
	} else if d.Verb == Look {
		return d
	}
	known := *s
	if s.Ledger == nil {
		known.Ledger = &Ledger{} // not readable for a moment: the slot was taken, and stays taken
	}
	c := &Candidate{
		State: &known, Now: now, Policy: p, Step: r.Step, Alert: s.AlertBy(r.Cause.Alert), request: r.Cause.Request,
		Verdict: s.verdictOn(r.Cause), Repair: r.ID, Own: r.ID,
	}
	if reason, f := c.hold(); f != nil {
		return s.interrupt(p, reason, f, now)
	}
	if c.unwitnessed() {
		d.Ask.Witness = true
		if call == nil {
			d.Verb, d.Message = Look, fmt.Sprintf("reading the witness before %s %s goes on", r.Step.Name, s.Node.Name)
			return d
		}
	}
	if call == nil {
		d.Signs = c.signs()
		d.Verb, d.Message = Resume, fmt.Sprintf("%s %s goes on", r.Step.Name, s.Node.Name)
		return d
	}
	d.Message = call.Note
	if blocked := clip(call.Blocked, 400); blocked != r.Note {
		d.Record = r.Clone()
		d.Record.Note = blocked
	}
	return d
}

// uncordoned ends the repair of a node that Drydock emptied, since somebody wants pods on it. It is a person's word like a
// cancel: to drain the node again would be against it, and to go on without would take the pods along.
func (s *State) uncordoned(when string, now time.Time) Decision {
	d := s.End(Cancelled, "somebody uncordoned the node "+when, now)
	d.Ended.By = ByPerson
	return d
}

// drained says that a step of the repair emptied the node, or began to.
func (r *Record) drained() bool {
	return slices.ContainsFunc(r.Done, func(done string) bool { return stepName(done) == drain.Name })
}

// unheard asks whether what a step under way rests on is young enough. One that is not being done, since another process
// began it, is looked after first; one that is ends when nobody has answered for too long.
func (s *State) unheard(underway bool, d *Decision, now time.Time) (Reason, *Finding) {
	oldest := now.Add(-s.Config.MaxStaleness)
	deaf := s.Word == nil || !s.Word.AskedAt.After(oldest)
	uncounted := s.Heartbeats == nil || !s.Heartbeats.ReadAt.After(oldest)
	d.Ask.Heartbeats = uncounted || now.Sub(s.Heartbeats.ReadAt) > LookFor
	switch {
	case s.Ledger == nil && errors.Is(s.LedgerErr, ErrLedgerMalformed):
		return RecordMalformed, &Finding{Message: s.LedgerErr.Error(), fleetwide: true}
	case !underway && (deaf || uncounted || s.Ledger == nil):
		d.Verb, d.Ask.Alerts, d.Message = Look, deaf, fmt.Sprintf("looking before %s %s goes on", s.Journal.Record.Step.Name, s.Node.Name)
	case deaf:
		return AlertUnconfirmed, Because("no Alertmanager has been asked for %s", s.Config.MaxStaleness)
	case uncounted:
		return Blind, Because("the nodes' leases could not be counted for %s", s.Config.MaxStaleness)
	default:
		d.Recheck = Earlier(d.Recheck, Earlier(s.Word.AskedAt, s.Heartbeats.ReadAt).Add(s.Config.MaxStaleness))
	}
	return "", nil
}

// interrupt puts the step back: it is held, and begins again when nothing holds it any more.
func (s *State) interrupt(p *Policy, reason Reason, f *Finding, now time.Time) Decision {
	r := s.Journal.Record.Clone()
	r.Phase, r.Since, r.Deadline, r.Note = Pending, Instant(now), Instant(now.Add(PendingFor)), ""
	r.Hold = NewHold(reason, f, now)
	r.Also = s.also(r)
	d := Decision{Verb: Keep, Reason: reason, Message: f.Message, Fleetwide: f.fleetwide || reason.Fleetwide(), Policy: p, Record: r}
	if f.Until.After(now) {
		d.Recheck = f.Until
	}
	return d
}

// taken is how long the step that goes on now has taken already. The time for which it was held does not count, but each
// interruption counts for a second at least, so that there is no end of them.
func (r *Record) taken(step StepRef) time.Duration {
	if !r.Intent.Of(r, step) || !r.interrupted() {
		return 0
	}
	return time.Duration(r.Intent.SpentSeconds)*time.Second + max(time.Second, r.Since.Sub(r.Intent.At).Truncate(time.Second))
}

// interrupted says that the record's intent is of a repeatable step that did not come to its end.
func (r *Record) interrupted() bool {
	return !Registry[r.Step.Name].Once && r.Intent.Outcome == ""
}

// worn ends a step that did not come to its end in time, or cannot. A node that is not Ready loses nothing by the next
// step that it has not lost already.
func (s *State) worn(p *Policy, why string, now time.Time) Decision {
	r := s.Journal.Record
	goesOn := r.Step.Index < len(p.Plan) && p.Plan[r.Step.Index].ContinueOnTimeout
	if goesOn || !ready(s.Node) {
		return s.after(CallRefused, why, now)
	}
	next := *s
	next.Journal.Record = r.Clone()
	next.Journal.Record.Intent.Outcome, next.Journal.Record.Intent.Why = CallRefused, clip(why, 300)
	return next.exhaust(p, now)
}

// after goes on with the plan when a repeatable step is over.
func (s *State) after(outcome CallOutcome, why string, now time.Time) Decision {
	next := *s
	r := s.Journal.Record.Clone()
	r.Intent.Outcome, r.Intent.Why, r.Note = outcome, clip(why, 300), ""
	next.Journal.Record = r
	return next.proceed(now)
}
