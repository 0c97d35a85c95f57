package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Cured ends the repair if its cure is proven: the target is well, the alert is gone, and
// Prometheus still works, so that the alert would fire again. All three must last for proofFor. ok
// is false if something contradicts the cure.
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
	// The answers must be newer than the end of proofFor. They must also be fresh, because this
	// process may have been suspended since.
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
		d.Recheck, d.Message = since.Add(p.ProofFor), fmt.Sprintf("%s; this proves the cure if it lasts for %s", how, text.Duration(p.ProofFor))
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

// Await waits for the proof of the cure after a step was issued.
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

// Proceed makes the next attempt, unless the target is well and its alert is gone.
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
	case r.Intent.Ahead(now):
		return t.WaitForClock(r, p, lookProof, now)
	case t.Stale(), unseen:
		return Decision{
			Verb: VerbLook, Policy: p, Ask: Ask{Alerts: t.Stale(), Observation: unseen},
			Well: !t.WellSince.IsZero(), Message: "looking at " + t.is.What + " before the next " + t.is.Next, // Well stays true, so that this look does not reset WellSince
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
	d := t.IssueOrHold(c, pending)
	d.Well, d.Heard = cure.Well, cure.Heard
	return d
}

// Expired cancels a repair that was held until its deadline.
func (t *Base) Expired(now time.Time) Decision {
	r := t.Record
	return t.End(remediations.OutcomeCancelled, fmt.Sprintf("the repair was held for %s: %s%s", text.Duration(remediations.PendingFor), r.Hold.Words(), r.LeftAs()), now)
}

// AwaitsProof is what most kinds of target wait for after a call.
const AwaitsProof = "waiting for proof"

const (
	// LookAgain is the time between two observations of a target that cannot be repaired now.
	LookAgain = 15 * time.Second
	// LookElsewhere is the time between two observations while the repair is held: the target may
	// move to another node.
	LookElsewhere = time.Minute
	// lookProof is the time between two observations of a repaired target.
	lookProof = 5 * time.Second
)

// Unseen reports whether the target was never observed, or its last observation is at least the
// given time old.
func (t *Base) Unseen(now time.Time, within time.Duration) bool {
	return now.Sub(t.lookedAt()) >= within // never observed: the zero time, which is long ago
}

// lookedAt returns when the wait for the next observation began. If the last one was too slow, that
// is its end. Otherwise a slow system would be observed without a pause.
func (t *Base) lookedAt() time.Time {
	if t.tooSlow() != nil {
		return t.self.SeenAt().Add(t.LookTook)
	}
	return t.self.SeenAt()
}

// LookAgain requests a new observation if the last one is older than the given time. Otherwise it
// sets Recheck to the time of the next one, unless Recheck is earlier.
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
