package lifecycle

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Live decides by the phase of the repair, or whether to begin one.
func (t *Base) Live(now time.Time) Decision {
	r := t.Record
	switch {
	case t.Cancelled():
		d := t.End(remediations.OutcomeCancelled, fmt.Sprintf("%s was set%s", remediations.CancelKey, r.LeftAs()), now)
		d.Ended.By = remediations.ByPerson
		return d
	case r.Observes() && !t.enforces(t.PolicyOf(r)):
		return t.observe(now)
	case r == nil || t.yields(r):
		return t.choose(now)
	case r.Phase == remediations.PhaseActing:
		return t.self.Acting(now)
	case r.Phase == remediations.PhaseVerifying && now.Before(r.Deadline) && !t.self.Overdue(r, now):
		return t.self.Await(now)
	case r.Phase == remediations.PhaseExhausted:
		return t.self.Rest(now)
	}
	return t.self.Proceed(now)
}

// Cancelled reports whether the repair must end now because a person cancelled it. A running call
// that cannot be repeated is not interrupted: the repair ends after it.
func (t *Base) Cancelled() bool {
	r := t.Record
	return r != nil && t.Node.Annotations[remediations.CancelKey] == r.ID && r.Phase != remediations.PhaseExhausted && (r.Phase != remediations.PhaseActing || r.Back != nil || !t.Config.Remediation(r.Step.Name).Once)
}

// choose returns the first decision about the target's alerts that is not a hold. A repair that has
// done nothing is replaced if another alert needs a repair that no guard holds.
func (t *Base) choose(now time.Time) Decision {
	r := t.Record
	if r != nil && !now.Before(r.Deadline) {
		return t.End(remediations.OutcomeCancelled, fmt.Sprintf("the repair was held for %s: %s", text.Duration(remediations.PendingFor), r.Hold.Words()), now)
	}
	if d, ok := t.self.First(now); ok {
		return d
	}
	var held, said *Decision
	for _, a := range t.self.Causes() {
		p := t.Config.Policy(a.Policy)
		if p == nil || p.Mode == remediations.ModeOff {
			continue
		}
		if t.Stale() {
			d := t.Look("asking Alertmanager about " + a.Name)
			d.AskStep = t.self.Likely(p, a, now)
			return d
		}
		if t.Over(a, now) {
			continue
		}
		if d, ok := t.saidAlready(p, a, now); ok {
			if said == nil {
				said = &d
			}
			continue
		}
		d := t.self.Consider(p, a, now)
		if d.Verb != VerbHold {
			return d
		}
		if held == nil {
			held = &d
		}
	}
	switch {
	case held != nil:
		return *held
	case r.Observes():
		return t.observed("", now)
	case r != nil:
		return Decision{Verb: VerbDrop, Message: "the alert ended before Drydock did anything", Policy: t.PolicyOf(r)}
	case said != nil && t.self.Elsewhere() != "":
		return t.leave(t.self.Elsewhere(), now)
	case said != nil:
		return *said
	}
	return Decision{Verb: VerbRest}
}

// IssueOrHold issues the step, or holds it, or requests facts that are too old. pending is the
// record that a hold writes.
func (t *Base) IssueOrHold(c *Candidate, pending *remediations.Record) Decision {
	c.Own = pending.ID
	if t.Ledger == nil {
		if reason, f := t.WithoutLedger(c.Now); f != nil {
			return t.self.Hold(c, pending, reason, f)
		}
		return Decision{Verb: VerbLook, Policy: c.Policy, Message: fmt.Sprintf("reading the ledger again, because the last read failed: %v", t.LedgerErr)}
	}
	if t.Asking != nil {
		t.Asking(c)
	}
	reason, f := c.HeldBy(nil)
	if f == nil || reason == remediations.ReasonObserving {
		instead, against, why := t.examine(c, pending, f != nil)
		switch {
		case instead != nil:
			return *instead
		case why != nil:
			reason, f = against, why
		default:
			f = observing(c) // asked again, because Examine may have changed the message's subject
		}
	}
	if f != nil {
		return t.self.Hold(c, pending, reason, f)
	}
	ask := Ask{Alerts: c.Now.Sub(t.LookSince) > min(remediations.LookFor, t.Config.MaxStaleness), Heartbeats: c.Remediation().Disruptive && t.Uncounted(c.Now)}
	step := t.self.Asks(c, &ask)
	if f := t.leasesLost(c.Now); ask.Heartbeats && f != nil {
		d := t.self.Hold(c, pending, remediations.ReasonBlind, f)
		d.Ask.Heartbeats = true
		return d
	}
	if ask != (Ask{}) {
		return Decision{Verb: VerbLook, Ask: ask, AskStep: step, Policy: c.Policy, Message: "checking once more right before the step"}
	}
	return t.issue(c, pending)
}

// Uncounted reports whether the count of stale node leases is missing or too old.
func (s *State) Uncounted(now time.Time) bool {
	return s.Heartbeats == nil || now.Sub(s.Heartbeats.ReadAt) > remediations.LookFor
}

// issue writes the step as an intent into the record. The record is written before the call.
func (t *Base) issue(c *Candidate, pending *remediations.Record) Decision {
	r, now := pending.Clone(), c.Now
	id := remediations.NextIntentID(r, c.Step, now)
	r.Phase, r.Step, r.Hold, r.Note = remediations.PhaseActing, c.Step, nil, ""
	r.Since, r.Deadline = remediations.Instant(now), remediations.Instant(now.Add(remediations.ActingFor))
	// A drain that continues is not a new attempt. The list Done alone does not show this, because
	// a plan may contain the same step twice.
	if !r.Intent.Of(r, c.Step) {
		r.Done = append(r.Done, c.Step.Issued())
	}
	r.Intent = &remediations.Intent{ID: id, At: remediations.Instant(now)}
	d := Decision{Verb: VerbIssue, Policy: c.Policy, Record: r}
	t.self.Intend(c, pending, &d)
	return d
}

// Settle waits until the call has ended, and then decides what follows.
func (t *Base) Settle(now time.Time) Decision {
	old, call := t.Record, t.Call
	p := t.PolicyOf(old)
	outcome, why, underWay := call.answer(old.Intent.ID, old.Deadline, now)
	if underWay {
		return Decision{Verb: VerbWait, Recheck: old.Deadline, Policy: p, Message: "the call is under way"}
	}
	if back, tooLong := call.withheld(old, now); back && (!tooLong || t.is.Kind == remediations.KindNode) {
		d := giveBack(old, call, p, t.is.Apart, now)
		if !tooLong {
			return d
		}
		t.Record = d.Record // the history must not list what was never done
		return t.End(remediations.OutcomeCancelled, fmt.Sprintf("the repair was held for %s: %s", text.Duration(remediations.PendingFor), d.Message), now)
	}
	r := old.Clone()
	r.Unreached, r.Alone = 0, 0
	d := Decision{Verb: VerbVerify, Record: r, Policy: p}
	r.Phase, r.Since = remediations.PhaseVerifying, remediations.Instant(now)
	r.Intent.Outcome, r.Intent.Why = outcome, text.Line(why, 300)
	wait := t.is.Apart
	if call != nil && call.IntentID == old.Intent.ID {
		wait = max(wait, call.again()+time.Second)
		if call.Silence != "" {
			r.Silence = call.Silence
		}
		if call.Stop {
			d.Stop = text.Line(why, 300) // giveBack does the same for a call that was withheld
		}
	}
	r.Deadline = remediations.Instant(r.Intent.At.Add(t.Config.WaitOf(p, r.Step)))
	switch outcome {
	case remediations.CallRefused:
		// After a refusal, the next attempt may begin soon. This wait is never longer than the
		// step's own wait, because after a jump of the clock now.Add(wait) could be much too late.
		r.Deadline = remediations.Earlier(r.Deadline, remediations.Instant(now.Add(wait)))
	case remediations.CallAccepted:
		why = "accepted"
	case remediations.CallUnknown:
	}
	d.Message = fmt.Sprintf("%s: %s; %s until %s", t.attempt(r), why, t.is.Awaits, r.Deadline.Format(time.RFC3339))
	return d
}

// NewHold returns the hold that the record gets for a finding.
func NewHold(reason remediations.Reason, f *Finding, now time.Time) *remediations.Hold {
	h := &remediations.Hold{Reason: reason, Message: text.Line(f.Message, 400), Since: remediations.Instant(now)}
	if !f.Until.IsZero() {
		until := remediations.Instant(f.Until)
		h.Until = &until
	}
	return h
}

func withoutStep(p *remediations.Policy) Decision {
	return Decision{Verb: VerbHold, Reason: remediations.ReasonProviderAbsent, Fleetwide: true, Concern: remediations.Concern{Policy: p.Name}, Policy: p, Message: fmt.Sprintf("no step of policy %s can be carried out by this installation", p.Name)}
}

// Held returns a hold that writes no record.
func Held(c *Candidate, reason remediations.Reason, f *Finding) Decision {
	d := Decision{Verb: VerbHold, Reason: reason, Message: f.Message, Policy: c.Policy, Fleetwide: f.Fleetwide || reason.Fleetwide(), Concern: f.Concern}
	if f.Until.After(c.Now) {
		d.Recheck = f.Until
	}
	return d
}

// NewRecord returns the record of a repair that has done nothing yet.
func (s *State) NewRecord(p *remediations.Policy, cause remediations.Cause, now time.Time) *remediations.Record {
	return &remediations.Record{
		V: remediations.RecordVersion, ID: s.NewID, Policy: p.Name, Cause: cause, Plan: p.Approved(s.Node), Phase: remediations.PhasePending,
		Began: remediations.Instant(now), Since: remediations.Instant(now), Deadline: remediations.Instant(now.Add(remediations.PendingFor)),
	}
}
