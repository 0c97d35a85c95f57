package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Cured decides whether the repair's cure is proven: the target is well and the alert gone while
// its source is alive, all of it for proofFor and confirmed again at the end of that time. ok is
// false if the target is not well.
func (t *Base) Cured(p *remediations.Policy, now time.Time) (d Decision, ok bool) {
	r := t.Record
	if p == nil {
		return Decision{Message: r.WithoutPolicy()}, false
	}
	how, well := t.self.Well()
	if !well {
		return Decision{}, false
	}
	due := now.Add(-t.Config.MaxStaleness)
	matured := !t.WellSince.IsZero() && !now.Before(t.WellSince.Add(p.ProofFor))
	// An answer requested at the end of that time must still be fresh when it is used: this process
	// may have slept since.
	if end := t.WellSince.Add(p.ProofFor); matured && end.After(due) {
		due = end
	}
	d = Decision{Verb: VerbWait, Policy: p, Recheck: r.Deadline, Well: !t.WellSince.IsZero()}
	cause := t.AlertBy(r.Cause.Alert)
	saidResolved := cause != nil && cause.Status == remediations.StatusResolved
	if t.Snapshot == nil || t.Snapshot.AskedAt.Before(due) || (saidResolved && t.Stale()) {
		d.Ask.Alerts, d.Message = true, "asking Alertmanager whether the alert is gone"
		return d, true
	}
	if t.Snapshot.BlindCause(t.Config) != "" || !t.self.Verdict(r.Cause).Gone {
		return Decision{}, false
	}
	switch there, against := t.self.Evidence(&d, p, due, now); {
	case against != "":
		return Decision{Message: against}, false
	case !there:
		return d, true
	}
	var ahead []string
	d.Well = true
	d.Heard, ahead = t.Snapshot.Heard()
	since := t.WellSince
	if since.IsZero() {
		since = now
	}
	switch {
	case !matured && p.ProofFor > 0:
		d.Recheck, d.Message = since.Add(p.ProofFor), fmt.Sprintf("%s; it counts once that has held for %s", how, text.Duration(p.ProofFor))
		return d, true
	case t.Config.Watchdog && (t.WellSince.IsZero() || !d.Heard.Since(t.WellHeard)):
		d.Message = how + "; waiting for the next Watchdog alert, which shows that Prometheus still works"
		if len(ahead) > 0 {
			d.Message += fmt.Sprintf("; the clock of Alertmanager %s is ahead, so its times do not count", text.Line(strings.Join(ahead, ", "), 200))
		}
		return d, true
	}
	outcome, why := t.self.Cure(p)
	return t.End(outcome, why, now), true
}

// Await waits for the proof that Well and Evidence give.
func (t *Base) Await(now time.Time) Decision {
	r := t.Record
	p := t.PolicyOf(r)
	if c := t.Call; c != nil && c.IntentID == r.Intent.ID && r.Intent.Outcome == remediations.CallUnknown && (c.Outcome == remediations.CallAccepted || c.Outcome == remediations.CallRefused) {
		return t.Settle(now) // the answer came late
	}
	if p == nil {
		return Decision{Verb: VerbWait, Recheck: r.Deadline, Message: r.WithoutPolicy()}
	}
	d, ok := t.Cured(p, now)
	if !ok {
		d = Decision{Verb: VerbWait, Policy: p, Recheck: r.Deadline, Message: "waiting for " + t.is.Asked + ": " + t.self.Missing()}
	}
	return t.LookAgain(d, now, lookProof)
}

// Proceed makes another attempt, unless the target is well and its alert gone.
func (t *Base) Proceed(now time.Time) Decision {
	r := t.Record
	p := t.PolicyOf(r)
	if p == nil || p.Kind != t.is.Kind || p.Mode == remediations.ModeOff {
		return t.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s is no longer configured, or off%s", r.Policy, r.LeftAs()), now)
	}
	if !t.Config.Serves(p) {
		return t.End(remediations.OutcomeCancelled, fmt.Sprintf("no provider of %s is configured any more%s", t.is.Asked, r.LeftAs()), now)
	}
	if d, ok := t.self.Instead(p, now); ok {
		return d
	}
	unseen := t.Unseen(now, LookAgain) || !t.self.SeenAt().After(r.Intent.At)
	switch {
	case t.NeverIssued(r, now):
		return t.End(remediations.OutcomeCancelled, r.FromTheFuture()+r.LeftAs(), now)
	case r.Intent.Ahead(now):
		return t.WaitForClock(r, p, lookProof, now)
	case t.Stale(), unseen:
		return Decision{
			Verb: VerbLook, Policy: p, Ask: Ask{Alerts: t.Stale(), Observation: unseen},
			Well: !t.WellSince.IsZero(), Message: "looking before the next " + t.is.Next, // which does not interrupt the time that it was well
		}
	}
	c := t.Candidate(p, t.AlertBy(r.Cause.Alert), r.Cause, r.Step, now)
	c.Repair, c.Own = r.ID, r.ID
	var cure Decision
	if c.Resolved() {
		var well bool
		if cure, well = t.Cured(p, now); cure.Verb == VerbEnd {
			return cure
		} else if well && r.Phase == remediations.PhasePending && now.Before(r.Deadline) {
			return t.LookAgain(cure, now, lookProof)
		}
	}
	if r.Phase == remediations.PhasePending && !now.Before(r.Deadline) {
		return t.self.Expired(now)
	}
	if d, ok := AfterWithheld(r, p, LookAgain, now); ok {
		return d
	}
	pending := r.Between(now)
	if r.Intent.Of(r, r.Step) || !t.Doable(p, r, r.Step) {
		next, more := t.NextStep(p, r, r.Step)
		if !more || t.self.Spent() {
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

// Expired cancels the repair.
func (t *Base) Expired(now time.Time) Decision {
	r := t.Record
	return t.End(remediations.OutcomeCancelled, fmt.Sprintf("held for %s: %s%s", text.Duration(remediations.PendingFor), r.Hold.Words(), r.LeftAs()), now)
}

// AwaitsProof is what Drydock waits for after the call of a kind whose proof is not one answer.
const AwaitsProof = "waiting for proof"

const (
	// LookAgain is how soon a target that cannot be repaired is observed again. LookElsewhere is
	// how soon a target is looked for on other nodes while its node is held. lookProof is how soon
	// a repaired target is observed again.
	LookAgain     = 15 * time.Second
	LookElsewhere = time.Minute
	lookProof     = 5 * time.Second
)

// Unseen reports whether the target was not observed within the time.
func (t *Base) Unseen(now time.Time, within time.Duration) bool {
	return t.self.SeenAt().IsZero() || now.Sub(t.lookedAt()) >= within
}

// lookedAt returns the time when the wait for the next observation begins. That is the beginning of
// the last one or, if it was too slow, its end, so that there is a pause in between.
func (t *Base) lookedAt() time.Time {
	if t.tooSlow() != nil {
		return t.self.SeenAt().Add(t.LookTook)
	}
	return t.self.SeenAt()
}

// LookAgain makes the decision observe the target again after the time.
func (t *Base) LookAgain(d Decision, now time.Time, after time.Duration) Decision {
	if t.Unseen(now, after) {
		d.Ask.Observation = true
		return d
	}
	if due := t.lookedAt().Add(after); d.Recheck.IsZero() || due.Before(d.Recheck) {
		d.Recheck = due
	}
	return d
}
