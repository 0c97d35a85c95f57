package remediations

import (
	"fmt"
	"time"
)

// provable is a target whose cure is proven beside its alert's end.
type provable interface {
	target
	// well says in a sentence how it is, and whether it is well by what is known of it.
	well() (string, bool)
	// evidence reads what else must be seen, not before due. there: nothing says otherwise; against: why it is not well. Neither: the
	// decision says what is waited for.
	evidence(d *Decision, p *Policy, due, now time.Time) (there bool, against string)
	// cure says whether this repair cured it.
	cure(p *Policy) (Outcome, string)
	verdictOn(Cause) Verdict
}

// cured asks whether the repair's cure is proven: the target well, the alert gone while its source lives, all of it for proofFor,
// and asked for again at the end of that time. ok is false where the target is not well.
func cured(t provable, p *Policy, now time.Time) (d Decision, ok bool) {
	s, r := t.known(), t.record()
	if p == nil {
		return Decision{Message: r.WithoutPolicy()}, false
	}
	how, well := t.well()
	if !well {
		return Decision{}, false
	}
	due := now.Add(-s.Config.MaxStaleness)
	matured := !s.WellSince.IsZero() && !now.Before(s.WellSince.Add(p.ProofFor))
	// What is asked for at the end of that time must still be fresh when it is used: this process may have slept since.
	if end := s.WellSince.Add(p.ProofFor); matured && end.After(due) {
		due = end
	}
	d = Decision{Verb: Wait, Policy: p, Recheck: r.Deadline, Well: !s.WellSince.IsZero()}
	cause := s.AlertBy(r.Cause.Alert)
	saidResolved := cause != nil && cause.Status == StatusResolved
	if s.Word == nil || s.Word.AskedAt.Before(due) || (saidResolved && s.Stale()) {
		d.Ask.Alerts, d.Message = true, "asking Alertmanager whether the alert is gone"
		return d, true
	}
	if s.Word.BlindCause(s.Config) != "" || !t.verdictOn(r.Cause).Gone {
		return Decision{}, false
	}
	switch there, against := t.evidence(&d, p, due, now); {
	case against != "":
		return Decision{Message: against}, false
	case !there:
		return d, true
	}
	d.Well, d.Heard = true, s.Word.heardAt()
	since := s.WellSince
	if since.IsZero() {
		since = now
	}
	switch {
	case !matured && p.ProofFor > 0:
		d.Recheck, d.Message = since.Add(p.ProofFor), fmt.Sprintf("%s; it counts once that has held for %s", how, p.ProofFor)
		return d, true
	case s.Config.Watchdog && (s.WellSince.IsZero() || !d.Heard.After(s.WellHeard)):
		d.Message = how + "; it counts once the Watchdog has come again, which shows that the alert's source still lives"
		return d, true
	}
	outcome, why := t.cure(p)
	return t.End(outcome, why, now), true
}

// awaitProof waits for the proof of the attempt that was issued.
func awaitProof(t *Target, now time.Time) Decision {
	s, r := t.State, t.Record
	p := t.PolicyOf(r)
	if c := s.Call; c != nil && c.IntentID == r.Intent.ID && r.Intent.Outcome == CallUnknown && (c.Outcome == CallAccepted || c.Outcome == CallRefused) {
		return settle(t, now) // the answer came late
	}
	if p == nil {
		return Decision{Verb: Wait, Recheck: r.Deadline, Message: r.WithoutPolicy()}
	}
	d, ok := cured(t, p, now)
	if !ok {
		d = Decision{Verb: Wait, Policy: p, Recheck: r.Deadline, Message: "waiting for " + t.Asked + ": " + t.Missing()}
	}
	return t.LookAgain(d, now, lookProof)
}

// goOn goes on after an attempt whose proof did not come.
func goOn(t *Target, now time.Time) Decision {
	s, r := t.State, t.Record
	p := t.PolicyOf(r)
	if p == nil || p.Kind != t.Kind || p.Mode == ModeOff {
		return t.End(Cancelled, fmt.Sprintf("policy %s is no longer configured, or off%s", r.Policy, r.LeftAs()), now)
	}
	if !s.Config.Serves(p) {
		return t.End(Cancelled, fmt.Sprintf("no provider of %s is configured any more%s", t.Asked, r.LeftAs()), now)
	}
	if t.Instead != nil {
		if d, ok := t.Instead(p, now); ok {
			return d
		}
	}
	unseen := t.Unseen(now, LookAgain) || !t.SeenAt.After(r.Intent.At)
	switch {
	case s.NeverIssued(r, now):
		return t.End(Cancelled, r.FromTheFuture()+r.LeftAs(), now)
	case r.Intent.Ahead(now):
		return s.WaitForClock(r, p, lookProof, now)
	case s.Stale(), unseen:
		return Decision{
			Verb: Look, Policy: p, Ask: Ask{Alerts: s.Stale(), Sighting: unseen},
			Well: !s.WellSince.IsZero(), Message: "looking before the next " + t.Next, // which is no break of what was well
		}
	}
	c := t.Candidate(p, s.AlertBy(r.Cause.Alert), r.Cause.Alert, r.Step, now)
	c.Repair, c.Own = r.ID, r.ID
	var cure Decision
	if c.Resolved() {
		var well bool
		if cure, well = cured(t, p, now); cure.Verb == End {
			return cure
		} else if well && r.Phase == Pending && now.Before(r.Deadline) {
			return t.LookAgain(cure, now, lookProof)
		}
	}
	if r.Phase == Pending && !now.Before(r.Deadline) {
		if t.Expired != nil {
			return t.Expired(now)
		}
		return t.HeldTooLong(now)
	}
	if d, ok := r.AfterWithheld(p, LookAgain, now); ok {
		return d
	}
	pending := r.Between(now)
	if r.Intent.Of(r, r.Step) || !s.Doable(p, r.Step) {
		next, more := s.NextStep(p, r.Step)
		if !more || t.Spent {
			c.Spent = "all attempts were made"
		} else {
			pending.Step = next
		}
	}
	c.Step = pending.Step
	d := t.Act(c, pending)
	d.Well, d.Heard = cure.Well, cure.Heard
	return d
}

// HeldTooLong ends a repair that was held until its deadline.
func (t *Target) HeldTooLong(now time.Time) Decision {
	r := t.Record
	return t.End(Cancelled, fmt.Sprintf("held for %s: %s%s", PendingFor, r.Hold.Words(), r.LeftAs()), now)
}
