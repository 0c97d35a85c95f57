package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Target is a target as the one lifecycle decides about it: what is known of it, and what is true of its kind alone, as values and
// functions. Those functions that may be nil say what holds then.
type Target struct {
	*State
	remediations.Subject
	Kind remediations.Kind

	// What is the target in a sentence, Of what an attempt is of, Asked who is looked at and waited for, Next what a further attempt
	// is called, Awaits what is waited for after a call; empty: for proof. Looking and Checking say that somebody looks, before a
	// repair and for its proof.
	What, Of, Asked, Next, Awaits, Looking, Checking string
	// SeenAt is when the last look at it began; zero: it was not looked at.
	SeenAt time.Time
	// Unknown is the reason for which it is held where nothing can be said of it.
	Unknown remediations.Reason
	// Apart is the least time between an attempt that was refused, or given back, and the next; zero: lookAgain.
	Apart time.Duration
	// Soon are the holds that may be over soon, so that the target is looked at again soon.
	Soon []remediations.Reason
	// Spent: no further attempt is made, whatever the plan says.
	Spent bool
	// TakesOff: the decision about it takes people's keys off the Node when their time is over, so they hold it no longer. The others
	// are held until then. OnRequest: a person can ask for its repair.
	TakesOff, OnRequest bool

	// PolicyFor is the policy of the record; nil: the configured one of that name. Causes are the alerts about it, in the order in
	// which they are considered; nil: the oldest first.
	PolicyFor func(r *remediations.Record) *remediations.Policy
	Causes    func() []*remediations.Alert
	// First is what comes before any alert; nil: a wait, where the first call was withheld. Likely is the step that the alert would
	// lead to, where somebody must be asked about it first; nil: nobody. Consider decides about an alert; nil: by the plan's first
	// step that can be carried out.
	First    func(now time.Time) (Decision, bool)
	Likely   func(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn
	Consider func(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision
	// Named writes the target into a new record of its repair; nil with a Consider of its own.
	Named func(r *remediations.Record)
	// Begun: something was done already, so that the repair does not give way where only another alert may go on.
	Begun func(r *remediations.Record) bool
	// Elsewhere says why the target is not this node's any more, by what was seen; empty: it is. Nil with an Examine and a Hold that ask
	// for it.
	Elsewhere func() string
	// Examine says what is seen of the target that speaks against the step, which no guard holds, or Observing alone: a decision
	// that comes instead of the step, or why it is held. Neither: nothing.
	Examine func(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding)
	// Guard is what its kind alone has against the candidate for the reason, see the table of guards; nil: nothing.
	Guard func(reason remediations.Reason, c *Candidate) *Finding
	// Own are the reasons for which Guard is asked in place of the guard itself, since what that rests on is not there.
	Own []remediations.Reason
	// Asks adds what else the step rests on and is not known, or too old, and names the step to those who are asked; nil: a look.
	Asks func(c *Candidate, ask *Ask) (step remediations.StepOn)
	// Intend adds to the decision, and to the record's new intent, what the kind must know of the attempt.
	Intend func(c *Candidate, pending *remediations.Record, d *Decision)
	// Hold is the decision that something holds the candidate; nil: it is written where it is news. Until is how long it may be held
	// so; nil with a Hold of its own.
	Hold  func(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision
	Until func(c *Candidate, pending *remediations.Record, reason remediations.Reason) time.Time
	// Acting goes on with what is under way beside calls of the plan; nil, or false: nothing is.
	Acting func(now time.Time) (Decision, bool)
	// Overdue: the record's deadline is further away than any is; nil: as the record says.
	Overdue func(r *remediations.Record, now time.Time) bool
	// Await waits for the proof of the attempt that was issued, Proceed goes on with the plan; nil: the target is well and its alert
	// gone. Rest leaves what ran out to a person.
	Await, Proceed, Rest func(now time.Time) Decision
	// Instead is what is done instead of another attempt; nil, or false: nothing is. Expired is the end of what was held until its
	// deadline; nil: it is cancelled.
	Instead func(p *remediations.Policy, now time.Time) (Decision, bool)
	Expired func(now time.Time) Decision
	// Well says in a sentence how it is, and whether it is well by what was seen; Cure whether this repair cured it; Missing what the
	// proof still lacks. Nil with an Await and a Proceed of its own. Evidence reads what else must be seen, not before due. there:
	// nothing says otherwise; against: why it is not well; neither: the decision says what is waited for. Nil: a look.
	Well     func() (string, bool)
	Cure     func(p *remediations.Policy) (remediations.Outcome, string)
	Missing  func() string
	Evidence func(d *Decision, p *remediations.Policy, due, now time.Time) (there bool, against string)
	// Sound says that it is well when its alert has ended; nil: nothing but the alert's end shows it.
	Sound func() bool
	// Said is what the Alertmanagers say of the cause; nil: of its alert.
	Said func(cause remediations.Cause) alerts.Verdict
	// Closing adds to the end of the repair, and to the history's entry, what is the kind's own; nil: nothing.
	Closing func(d *Decision, now time.Time)
	// Tidy takes off the Node, in the decision's write, what has had its effect or is over. The node's own is Decide's.
	Tidy func(d *Decision, now time.Time)
}

// DecideTarget says what is to be done about such a target now. It is pure, as Decide is. What people write on the Node is Decide's,
// but for what they say of the target's repair.
func DecideTarget(t *Target, now time.Time) Decision {
	if t.Journal.Malformed != nil && t.Record == nil {
		return Decision{Verb: VerbRest} // Decide says so, for the whole node. A repair that is on record goes on to its end
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
	t.Tidy(&d, now)
	return d
}

// clampOwn sets the times of its record right that lie in the future, as State.clamp does for the node's.
func (t *Target) clampOwn(now time.Time) (Decision, bool) {
	r := t.Record
	if r == nil || r.Phase == remediations.PhaseExhausted || (r.Phase == remediations.PhaseActing && r.Back == nil) {
		return Decision{}, false
	}
	p := t.PolicyOf(r)
	c, wrong := t.Config.Clamped(p, r, now)
	return Decision{Verb: VerbWait, Record: c, Policy: p, Recheck: now, Message: "times from the future on record are set to now"}, wrong
}

// Tidied takes the approval that the repair begins by, and drops those of the alerts that are over and that the repair does not refer
// to any more. was is the repair before the decision.
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

func (t *Target) PolicyOf(r *remediations.Record) *remediations.Policy {
	if t.PolicyFor != nil {
		return t.PolicyFor(r)
	}
	return t.Config.Policy(r.Policy)
}

func (t *Target) causes() []*remediations.Alert {
	if t.Causes != nil {
		return t.Causes()
	}
	return pointers(t.Alerts)
}

// untouched: nothing was done yet, so that the repair gives way where only another alert may go on.
func (t *Target) untouched(r *remediations.Record) bool {
	return r.Phase == remediations.PhasePending && !t.Begun(r)
}

func (t *Target) End(o remediations.Outcome, why string, now time.Time) Decision {
	d := Decision{Verb: VerbEnd, Message: why, Policy: t.PolicyOf(t.Record), Ended: t.Record.Ended(o, why, now)}
	d.Ended.Target = t.Entry()
	if t.Closing != nil {
		t.Closing(&d, now)
	}
	return d
}

// leave ends what this node has on a target that is not its own any more: the poll brings its alerts to the node that has it.
func (t *Target) leave(why string, now time.Time) Decision {
	d := Decision{Verb: VerbRest, Message: why}
	if t.Record != nil {
		d = t.End(remediations.OutcomeSuperseded, why, now)
	}
	d.Prune = append(d.Prune, remediations.KeysOf(t.Alerts)...)
	return d
}

// pointers are those alerts in place.
func pointers(alerts []remediations.Alert) []*remediations.Alert {
	out := make([]*remediations.Alert, len(alerts))
	for i := range alerts {
		out[i] = &alerts[i]
	}
	return out
}
