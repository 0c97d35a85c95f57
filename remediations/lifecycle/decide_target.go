package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// DecideTarget decides about a sidecar or a location. The same target and time give the same
// decision. Decide of package node handles the annotations that concern no repair of the target.
func DecideTarget(target Target, now time.Time) Decision {
	t := target.base()
	if t.Journal.Malformed != nil && t.Record == nil {
		return Decision{Verb: VerbRest} // the node's own decision reports the malformed record
	}
	right, wrong := t.clampOwn(now)
	trusts, ask := t.Trusts(now)
	if wrong && trusts {
		return right
	}
	d := t.Live(now)
	d.Ask.Heartbeats = d.Ask.Heartbeats || (wrong && ask)
	if d.Ended != nil && d.Ended.By == remediations.ByPerson {
		d.Consume = append(d.Consume, remediations.CancelKey)
	}
	target.Tidy(&d, now)
	return d
}

func (t *Base) clampOwn(now time.Time) (Decision, bool) {
	r := t.Record
	if r == nil || r.Phase == remediations.PhaseExhausted || (r.Phase == remediations.PhaseActing && r.Back == nil) {
		return Decision{}, false
	}
	p := t.PolicyOf(r)
	c, wrong := t.Config.Clamped(p, r, now)
	return Decision{Verb: VerbWait, Record: c, Policy: p, Recheck: now, Message: "the repair's record has times in the future; Drydock sets them to now"}, wrong
}

// Tidied adds the annotations to remove from the Node: an approval that is used now, and alerts
// that have ended, except the alert of the present repair. was is the record before the decision.
func (s *State) Tidied(d *Decision, was *remediations.Record, alerts []*remediations.Alert, now time.Time) {
	if d.Verb == VerbIssue && s.Node.Annotations[remediations.ApproveKey] == d.Record.ID {
		d.Consume = append(d.Consume, remediations.ApproveKey)
	}
	if s.Stale() || d.Verb == VerbLook {
		return
	}
	kept := was
	if d.Record != nil || d.Verb == VerbEnd || d.Verb == VerbDrop {
		kept = d.Record
	}
	for _, a := range alerts {
		if (kept == nil || kept.Phase == remediations.PhaseExhausted || kept.Cause.Alert != a.Fingerprint) && s.Over(a, now) && !slices.Contains(d.Prune, a.Key()) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
}

// PolicyOf returns the record's policy, or nil if it is no longer configured.
func (t *Base) PolicyOf(r *remediations.Record) *remediations.Policy { return t.self.PolicyFor(r) }

// yields reports whether the repair has done nothing. Another alert then replaces it if it needs a
// repair that no guard holds.
func (t *Base) yields(r *remediations.Record) bool {
	return r.Phase == remediations.PhasePending && !t.self.Begun(r)
}

func (t *Base) End(o remediations.Outcome, why string, now time.Time) Decision {
	d := Decision{Verb: VerbEnd, Message: why, Policy: t.PolicyOf(t.Record), Ended: t.Record.Ended(o, why, now)}
	d.Ended.Target = t.Entry()
	t.self.Closing(&d, now)
	return d
}

// leave ends the repair of a target that belongs to another node now, and removes its alerts from
// this Node. The next poll of Alertmanager writes them on the other Node.
func (t *Base) leave(why string, now time.Time) Decision {
	d := Decision{Verb: VerbRest, Message: why}
	if t.Record != nil {
		d = t.End(remediations.OutcomeSuperseded, why, now)
	}
	d.Prune = append(d.Prune, remediations.KeysOf(t.Alerts)...)
	return d
}

func pointers(alerts []remediations.Alert) []*remediations.Alert {
	out := make([]*remediations.Alert, len(alerts))
	for i := range alerts {
		out[i] = &alerts[i]
	}
	return out
}

// Candidate returns the candidate for a step. a is nil if the Node no longer has the alert.
func (t *Base) Candidate(p *remediations.Policy, a *remediations.Alert, cause remediations.Cause, step remediations.StepRef, now time.Time) *Candidate {
	return CandidateOf(t.self, p, a, cause, step, now)
}

// examine first requests a new observation if the last one is too old. If the target belongs to
// another node now, its repair on this node ends.
func (t *Base) examine(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding) {
	slow := t.tooSlow()
	if t.is.Looking != "" && slow == nil && t.Unseen(c.Now, LookAgain) {
		return &Decision{Verb: VerbLook, Ask: Ask{Observation: true}, Policy: c.Policy, Message: t.is.Looking}, "", nil
	}
	if why := t.self.Elsewhere(); why != "" {
		d := t.leave(why, c.Now)
		return &d, "", nil
	}
	instead, against, why := t.self.Examine(c, pending, observing)
	if why == nil && slow != nil {
		return nil, t.is.Unknown, slow
	}
	return instead, against, why
}

// tooSlow returns a finding if the last observation was already too old when it ended. It informs
// people, because the next one would probably be as slow.
func (t *Base) tooSlow() *Finding {
	if t.self.SeenAt().IsZero() || t.LookTook < remediations.LookFor {
		return nil
	}
	return Because("looking at %s took %s, and an observation is used for only %s; the API server or the provider is too slow", t.is.What, text.Duration(t.LookTook.Round(time.Second)), text.Duration(remediations.LookFor))
}

func (t *Base) attempt(r *remediations.Record) string {
	if t.is.Of == "" {
		return r.Step.String()
	}
	return r.Step.String() + " of " + t.is.Of
}
