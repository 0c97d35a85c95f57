package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Base has what is the same for most kinds of target. The type of each kind embeds it.
type Base struct {
	*State
	remediations.Subject

	// The lifecycle calls the methods of self, so that a method of the kind replaces the method of
	// Base with the same name.
	self Target
	is   Description
}

// Bind sets the known facts. self is the target that embeds this Base.
func (t *Base) Bind(self Target, s *State, of remediations.Subject) {
	t.State, t.Subject, t.self = s, of, self
	t.is = self.Describe()
}

func (t *Base) base() *Base { return t }

// PolicyFor returns the configured policy with the name that the record has.
func (t *Base) PolicyFor(r *remediations.Record) *remediations.Policy {
	return t.Config.Policy(r.Policy)
}

// Causes returns the target's alerts, the oldest first.
func (t *Base) Causes() []*remediations.Alert { return pointers(t.Alerts) }

// Verdict returns what the Alertmanagers say about the alert that caused the repair.
func (t *Base) Verdict(cause remediations.Cause) alerts.Verdict {
	return t.Snapshot.VerdictFor(cause.Alert, t.Config, "")
}

// Guard returns nil: most kinds have no guards of their own.
func (t *Base) Guard(remediations.Reason, *Candidate) *Finding { return nil }

// SeenAt returns zero: most targets are not observed.
func (t *Base) SeenAt() time.Time { return time.Time{} }

// Elsewhere returns "": a target of most kinds cannot move to another node.
func (t *Base) Elsewhere() string { return "" }

// Likely returns zero: most kinds ask no other system before a step.
func (t *Base) Likely(*remediations.Policy, *remediations.Alert, time.Time) remediations.StepOn {
	return remediations.StepOn{}
}

// Asks requests an observation if the last one is too old.
func (t *Base) Asks(c *Candidate, ask *Ask) remediations.StepOn {
	ask.Observation = t.Unseen(c.Now, remediations.LookFor)
	return remediations.StepOn{}
}

// Well returns false: no observation shows that the target is well.
func (t *Base) Well() (string, bool) { return t.is.What, false }

// Missing returns the message that the target is not well.
func (t *Base) Missing() string { return t.is.What + " is not well" }

// Evidence accepts an observation that began at due or later. Otherwise it requests a new one.
func (t *Base) Evidence(d *Decision, _ *remediations.Policy, due, _ time.Time) (there bool, against string) {
	if t.self.SeenAt().Before(due) {
		d.Ask.Observation, d.Message = true, t.is.Checking
		return false, ""
	}
	return true, ""
}

// Sound returns true: the end of the alert shows that the target is well.
func (t *Base) Sound() bool { return true }

// First lets the repair wait after an attempt that did nothing (see Call.Withheld).
func (t *Base) First(now time.Time) (Decision, bool) {
	if t.Record == nil {
		return Decision{}, false
	}
	return AfterWithheld(t.Record, t.PolicyOf(t.Record), t.is.Apart, now)
}

// Consider decides about the first step of the plan that can be carried out.
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
	return t.IssueOrHold(t.Candidate(p, a, remediations.Cause{Alert: a.Fingerprint}, step, now), r)
}

// Begun reports whether the repair has issued a step.
func (t *Base) Begun(r *remediations.Record) bool { return r.Intent != nil }

// Hold writes the hold into the record if the record does not have it yet.
func (t *Base) Hold(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision {
	d := Held(c, reason, f)
	d.Fleetwide = f.Fleetwide || (reason.Fleetwide() && reason != remediations.ReasonAtLimit) // here AtLimit is the kind's own limit, not one of all nodes
	d.Ask.Heartbeats = reason == remediations.ReasonBlind && t.Heartbeats.Blind() != "" && t.Uncounted(c.Now)
	if hold := NewHold(reason, f, c.Now); t.Record.Holds(pending, hold, d.Fleetwide) {
		d.Record = pending.Clone()
		d.Record.Hold, d.Record.Deadline = hold, t.self.Until(c, pending, reason)
	}
	// The target may now belong to another node, where this node's hold does not apply. Then the
	// repair on this node ends. But an undo that is running continues, and a cancelled repair stays
	// cancelled on every node.
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

// Until returns the record's deadline: a hold does not change it.
func (t *Base) Until(_ *Candidate, pending *remediations.Record, _ remediations.Reason) time.Time {
	return pending.Deadline
}

// Acting waits for the result of the call.
func (t *Base) Acting(now time.Time) Decision { return t.Settle(now) }

// Overdue reports whether the record's deadline is too far in the future.
func (t *Base) Overdue(r *remediations.Record, now time.Time) bool { return r.Beyond(now) }

// Instead returns false: nothing replaces a further attempt.
func (t *Base) Instead(*remediations.Policy, time.Time) (Decision, bool) { return Decision{}, false }

// Spent returns false: the plan alone limits the attempts.
func (t *Base) Spent() bool { return false }

// Closing adds nothing: most kinds have no data of their own for the end of a repair.
func (t *Base) Closing(*Decision, time.Time) {}

// Cure returns SelfRecovered: nothing proves that the repair cured the target.
func (t *Base) Cure(*remediations.Policy) (remediations.Outcome, string) {
	return remediations.OutcomeSelfRecovered, t.is.What + " is well and the alert is gone"
}

// Tidy removes the approval that the repair has used, and the alerts that have ended.
func (t *Base) Tidy(d *Decision, now time.Time) { t.Tidied(d, t.Record, t.self.Causes(), now) }
