package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Base is what every kind of target embeds: what is known of the target, the lifecycle, and the
// methods of Target that are the same for most kinds. It lacks Describe, Named, Examine, Intend and
// Rest, because these differ for every kind.
type Base struct {
	*State
	remediations.Subject

	// self is the target that embeds this Base. The lifecycle asks it, so that what the kind writes
	// replaces a method of Base.
	self Target
	is   Description
}

// Bind sets what is known of the target. self is the target that embeds this Base.
func (t *Base) Bind(self Target, s *State, of remediations.Subject) {
	t.State, t.Subject, t.self = s, of, self
	t.is = self.Describe()
}

func (t *Base) base() *Base { return t } //nolint:unused // the kinds of targets embed Base, and Target asks for it

// PolicyFor returns the configured policy of that name.
func (t *Base) PolicyFor(r *remediations.Record) *remediations.Policy {
	return t.Config.Policy(r.Policy)
}

// Causes returns the oldest alert first.
func (t *Base) Causes() []*remediations.Alert { return pointers(t.Alerts) }

// Verdict returns the verdict on the cause's alert.
func (t *Base) Verdict(cause remediations.Cause) alerts.Verdict {
	return t.Snapshot.VerdictFor(cause.Alert, t.Config, "")
}

// Guard has nothing against the candidate.
func (t *Base) Guard(remediations.Reason, *Candidate) *Finding { return nil }

// SeenAt returns that the target was not observed.
func (t *Base) SeenAt() time.Time { return time.Time{} }

// Elsewhere returns that the target belongs to its node.
func (t *Base) Elsewhere() string { return "" }

// Likely returns that no system must be asked.
func (t *Base) Likely(*remediations.Policy, *remediations.Alert, time.Time) remediations.StepOn {
	return remediations.StepOn{}
}

// Asks asks for a fresh observation.
func (t *Base) Asks(c *Candidate, ask *Ask) remediations.StepOn {
	ask.Observation = t.Unseen(c.Now, remediations.LookFor)
	return remediations.StepOn{}
}

// Well returns that no observation shows the target to be well.
func (t *Base) Well() (string, bool) { return t.is.What, false }

// Missing returns that the target is not well.
func (t *Base) Missing() string { return t.is.What + " is not well" }

// Evidence is a fresh observation.
func (t *Base) Evidence(d *Decision, _ *remediations.Policy, due, _ time.Time) (there bool, against string) {
	if t.self.SeenAt().Before(due) {
		d.Ask.Observation, d.Message = true, t.is.Checking
		return false, ""
	}
	return true, ""
}

// Sound trusts the alert's end.
func (t *Base) Sound() bool { return true }

// First waits after a withheld first call.
func (t *Base) First(now time.Time) (Decision, bool) {
	if t.Record == nil {
		return Decision{}, false
	}
	return AfterWithheld(t.Record, t.PolicyOf(t.Record), t.is.Apart, now)
}

// Consider decides by the plan's first step that can be carried out.
func (t *Base) Consider(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision {
	step, ok := t.FirstStep(p, t.Record)
	if !ok {
		return withoutStep(p)
	}
	r := t.Record
	if r == nil || r.Cause.Alert != a.Fingerprint || r.Policy != p.Name || !r.AsksFor(p, t.Node) {
		r = t.NewRecord(p, remediations.Cause{Alert: a.Fingerprint}, now)
		r.Step = step
		t.self.Named(r)
	}
	r = r.Clone()
	r.Plan = p.Approved(t.Node)
	return t.Act(t.Candidate(p, a, remediations.Cause{Alert: a.Fingerprint}, step, now), r)
}

// Begun reports whether a step was issued.
func (t *Base) Begun(r *remediations.Record) bool { return r.Intent != nil }

// Hold writes the hold if it is new.
func (t *Base) Hold(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision {
	d := Held(c, reason, f)
	d.Fleetwide = f.Fleetwide || (reason.Fleetwide() && reason != remediations.ReasonAtLimit) // a limit of its kind is not a node's
	d.Ask.Heartbeats = reason == remediations.ReasonBlind && t.Heartbeats.Blind() != "" && t.Uncounted(c.Now)
	if hold := NewHold(reason, f, c.Now); t.Record.Holds(pending, hold, d.Fleetwide) {
		d.Record = pending.Clone()
		d.Record.Hold, d.Record.Deadline = hold, t.self.Until(c, pending, reason)
	}
	// What holds the candidate may be this node's, while the target now belongs to another node.
	// But a cancelled repair stays cancelled, whichever node has its target now, and an undo under
	// way continues.
	if pending.Back == nil && cancelled(c) == nil {
		if why := t.self.Elsewhere(); why != "" {
			return t.leave(why, c.Now)
		}
	}
	if slices.Contains(t.is.Soon, reason) {
		return t.LookAgain(d, c.Now, LookAgain)
	}
	return t.LookAgain(d, c.Now, LookElsewhere)
}

// Until lets the hold last until the record's deadline.
func (t *Base) Until(_ *Candidate, pending *remediations.Record, _ remediations.Reason) time.Time {
	return pending.Deadline
}

// Acting waits for the call's answer.
func (t *Base) Acting(now time.Time) Decision { return t.Settle(now) }

// Overdue lets the record decide.
func (t *Base) Overdue(r *remediations.Record, now time.Time) bool { return r.Beyond(now) }

// Instead does nothing.
func (t *Base) Instead(*remediations.Policy, time.Time) (Decision, bool) { return Decision{}, false }

// Spent leaves it to the plan.
func (t *Base) Spent() bool { return false }

// Closing adds nothing.
func (t *Base) Closing(*Decision, time.Time) {}

// Cure does not claim the cure for the repair.
func (t *Base) Cure(*remediations.Policy) (remediations.Outcome, string) {
	return remediations.OutcomeSelfRecovered, t.is.What + " is well and the alert is gone"
}

// Tidy removes the approval that the repair has used, and the target's alerts that have ended.
func (t *Base) Tidy(d *Decision, now time.Time) { t.Tidied(d, t.Record, t.self.Causes(), now) }
