package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

func (t *Target) first(now time.Time) (Decision, bool) {
	switch {
	case t.First != nil:
		return t.First(now)
	case t.Record == nil:
		return Decision{}, false
	}
	return AfterWithheld(t.Record, t.PolicyOf(t.Record), t.apart(), now)
}

func (t *Target) likelyStep(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn {
	if t.Likely != nil {
		return t.Likely(p, a, now)
	}
	return remediations.StepOn{}
}

func (t *Target) consider(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision {
	if t.Consider != nil {
		return t.Consider(p, a, now)
	}
	step, ok := t.FirstStep(p, t.Record)
	if !ok {
		return withoutStep(p)
	}
	r := t.Record
	if r == nil || r.Cause.Alert != a.Fingerprint || r.Policy != p.Name || !r.AsksFor(p, t.Node) {
		r = t.NewRecord(p, remediations.Cause{Alert: a.Fingerprint}, now)
		r.Step = step
		t.Named(r)
	}
	r = r.Clone()
	r.Plan = p.Approved(t.Node)
	return t.Act(t.Candidate(p, a, remediations.Cause{Alert: a.Fingerprint}, step, now), r)
}

// Candidate returns the policy's step for the cause, as the guards see it. a is the cause's alert;
// nil: it is not on the Node.
func (t *Target) Candidate(p *remediations.Policy, a *remediations.Alert, cause remediations.Cause, step remediations.StepRef, now time.Time) *Candidate {
	c := &Candidate{State: t.State, Now: now, Policy: p, Step: step, Alert: a, Request: cause.Request, Kind: t.Kind, target: t, Subject: t.What}
	if t.Snapshot != nil { // undoing moves needs no alert, and Alertmanager may not have been asked yet
		c.Verdict = t.verdictOn(cause)
	}
	return c
}

func (t *Target) examine(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding) {
	slow := t.tooSlow()
	if t.Looking != "" && slow == nil && t.Unseen(c.Now, LookAgain) {
		return &Decision{Verb: VerbLook, Ask: Ask{Observation: true}, Policy: c.Policy, Message: t.Looking}, "", nil
	}
	if t.Elsewhere != nil {
		if why := t.Elsewhere(); why != "" {
			d := t.leave(why, c.Now)
			return &d, "", nil
		}
	}
	instead, against, why := t.Examine(c, pending, observing)
	if why == nil && slow != nil {
		return nil, t.Unknown, slow
	}
	return instead, against, why
}

// tooSlow returns the finding that the last observation took too long to be used; nil: it did not.
// Observing again at once would only repeat this without any message.
func (t *Target) tooSlow() *Finding {
	if t.Looking == "" || t.SeenAt.IsZero() || t.LookTook < remediations.LookFor {
		return nil
	}
	return Because("looking at %s took %s, and an observation is used for only %s; the API server or the provider is too slow", t.What, text.Duration(t.LookTook.Round(time.Second)), text.Duration(remediations.LookFor))
}

func (t *Target) asks(c *Candidate, ask *Ask) remediations.StepOn {
	if t.Asks != nil {
		return t.Asks(c, ask)
	}
	ask.Observation = t.Unseen(c.Now, remediations.LookFor)
	return remediations.StepOn{}
}

func (t *Target) HoldBack(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision {
	if t.Hold != nil {
		return t.Hold(c, pending, reason, f)
	}
	d := Held(c, reason, f)
	d.Fleetwide = f.Fleetwide || (reason.Fleetwide() && reason != remediations.ReasonAtLimit) // a limit of its kind is not a node's
	d.Ask.Heartbeats = reason == remediations.ReasonBlind && t.Heartbeats.Blind() != "" && t.Uncounted(c.Now)
	if hold := NewHold(reason, f, c.Now); t.Record.Holds(pending, hold, d.Fleetwide) {
		d.Record = pending.Clone()
		d.Record.Hold, d.Record.Deadline = hold, t.Until(c, pending, reason)
	}
	// What holds the candidate may be this node's, while the target now belongs to another node.
	// But a cancelled repair stays cancelled, whichever node has its target now, and an undo under
	// way continues.
	if pending.Back == nil && cancelled(c) == nil {
		if why := t.Elsewhere(); why != "" {
			return t.leave(why, c.Now)
		}
	}
	if slices.Contains(t.Soon, reason) {
		return t.LookAgain(d, c.Now, LookAgain)
	}
	return t.LookAgain(d, c.Now, LookElsewhere)
}

func (t *Target) acting(now time.Time) Decision {
	if t.Acting != nil {
		if d, ok := t.Acting(now); ok {
			return d
		}
	}
	return t.Settle(now)
}

func (t *Target) overdue(r *remediations.Record, now time.Time) bool {
	if t.Overdue != nil {
		return t.Overdue(r, now)
	}
	return r.Beyond(now)
}

func (t *Target) await(now time.Time) Decision {
	if t.Await != nil {
		return t.Await(now)
	}
	return t.awaitProof(now)
}

func (t *Target) proceed(now time.Time) Decision {
	if t.Proceed != nil {
		return t.Proceed(now)
	}
	return t.goOn(now)
}

func (t *Target) apart() time.Duration { return max(t.Apart, LookAgain) }

func (t *Target) attempt(r *remediations.Record) string {
	if t.Of == "" {
		return r.Step.String()
	}
	return r.Step.String() + " of " + t.Of
}

func (t *Target) awaits() string {
	if t.Awaits != "" {
		return t.Awaits
	}
	return "waiting for proof"
}

func (t *Target) evidence(d *Decision, p *remediations.Policy, due, now time.Time) (there bool, against string) {
	if t.Evidence != nil {
		return t.Evidence(d, p, due, now)
	}
	if t.SeenAt.Before(due) {
		d.Ask.Observation, d.Message = true, t.Checking
		return false, ""
	}
	return true, ""
}

func (t *Target) verdictOn(cause remediations.Cause) alerts.Verdict {
	if t.Said != nil {
		return t.Said(cause)
	}
	return t.Snapshot.VerdictFor(cause.Alert, t.Config, "")
}
