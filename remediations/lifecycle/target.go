package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Target is one target, as Live and DecideTarget decide about it. It has what is known of the
// target, and what is special to its kind, as values and functions. A function that may be nil
// names its default.
type Target struct {
	*State
	remediations.Subject
	Kind remediations.Kind

	// Words that messages use for this kind. What names the target. Of names what an attempt
	// belongs to. Asked is the system that is observed and waited for. Next names a further
	// attempt. Awaits is what Drydock waits for after a call; empty: the proof. Looking and
	// Checking say that Drydock observes the target, before a repair and for its proof.
	What, Of, Asked, Next, Awaits, Looking, Checking string
	// SeenAt is when the last observation of the target began; zero: it was not observed.
	SeenAt time.Time
	// Unknown is the reason that holds the target while its state is unknown.
	Unknown remediations.Reason
	// Apart is the least time between a refused or withheld attempt and the next one; zero:
	// LookAgain.
	Apart time.Duration
	// Soon are the holds that may end soon, so that the target is observed again soon.
	Soon []remediations.Reason
	// Spent: no further attempt is made, even if the plan has more.
	Spent bool
	// TakesOff: the decision about the target removes people's annotations from the Node when their
	// time has ended, so that they no longer hold it. Other targets are held until the annotations
	// are removed. OnRequest: a person can request its repair.
	TakesOff, OnRequest bool

	// PolicyFor returns the policy of the record; nil: the configured policy of that name. Causes
	// returns the alerts about the target, in the order of consideration; nil: oldest first.
	PolicyFor func(r *remediations.Record) *remediations.Policy
	Causes    func() []*remediations.Alert
	// First decides before any alert; nil: it waits after a withheld first call. Likely returns the
	// step that the alert would lead to, if another system must be asked about the step first; nil:
	// no step. Consider decides about an alert; nil: by the plan's first step that can be carried
	// out.
	First    func(now time.Time) (Decision, bool)
	Likely   func(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn
	Consider func(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision
	// Named writes the target into the new record of a repair; nil only if Consider is set.
	Named func(r *remediations.Record)
	// Begun reports whether something was already done, so that the repair does not yield to
	// another alert.
	Begun func(r *remediations.Record) bool
	// Elsewhere returns why the target no longer belongs to this node, by the observation; empty:
	// it does. It may be nil only if Examine and Hold check this themselves.
	Elsewhere func() string
	// Examine checks what the observation says against the step, when no guard or only Observing
	// holds it. It returns a decision that replaces the step, or a reason and finding that hold it,
	// or neither.
	Examine func(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding)
	// Guard returns what this kind alone has against the candidate for the reason, see the table of
	// guards; nil: nothing.
	Guard func(reason remediations.Reason, c *Candidate) *Finding
	// Own are the reasons that Guard answers in place of the general guard, because what that guard
	// reads does not exist for this kind.
	Own []remediations.Reason
	// Asks adds to ask what else the step depends on and is unknown or too old. It returns the step
	// that other systems are asked about; nil: only an observation is needed.
	Asks func(c *Candidate, ask *Ask) (step remediations.StepOn)
	// Intend adds to the decision and to the record's new intent what the kind needs for the
	// attempt.
	Intend func(c *Candidate, pending *remediations.Record, d *Decision)
	// Hold returns the decision to hold the candidate; nil: the hold is written if it is new. Until
	// returns how long this hold may last; nil only if Hold is set.
	Hold  func(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision
	Until func(c *Candidate, pending *remediations.Record, reason remediations.Reason) time.Time
	// Acting continues work under way other than the plan's calls; nil or false: no such work.
	Acting func(now time.Time) (Decision, bool)
	// Overdue reports whether the record's deadline is further away than any deadline can be; nil:
	// the record decides.
	Overdue func(r *remediations.Record, now time.Time) bool
	// Await waits for the proof of the attempt that was issued. Proceed continues with the plan;
	// nil: the target is well and its alert gone. Rest leaves an exhausted repair to a person.
	Await, Proceed, Rest func(now time.Time) Decision
	// Instead does something in place of another attempt; nil or false: nothing. Expired ends a
	// repair that was held until its deadline; nil: the repair is cancelled.
	Instead func(p *remediations.Policy, now time.Time) (Decision, bool)
	Expired func(now time.Time) Decision
	// Well describes the target, and reports whether it is well by the observation. Cure returns
	// whether this repair cured it. Missing returns what the proof still lacks. They may be nil
	// only if Await and Proceed are set. Evidence reads what else the proof needs, not older than
	// due. there: nothing contradicts the cure. against: why the target is not well. Neither: the
	// decision says what Drydock waits for. Nil: a fresh observation is enough.
	Well     func() (string, bool)
	Cure     func(p *remediations.Policy) (remediations.Outcome, string)
	Missing  func() string
	Evidence func(d *Decision, p *remediations.Policy, due, now time.Time) (there bool, against string)
	// Sound reports whether the target is well when its alert has ended; nil: only the alert's end
	// shows it.
	Sound func() bool
	// Said returns the Alertmanagers' verdict on the cause; nil: the verdict on its alert.
	Said func(cause remediations.Cause) alerts.Verdict
	// Closing adds what is special to the kind to the end of the repair and to the history's entry;
	// nil: nothing.
	Closing func(d *Decision, now time.Time)
	// Tidy removes from the Node, in the decision's write, what has had its effect or has ended.
	// Decide does this for the node itself.
	Tidy func(d *Decision, now time.Time)
}

// DecideTarget decides what to do about a target other than the node now. It is pure, like Decide.
// Decide handles what people write on the Node, except what concerns the target's repair.
func DecideTarget(t *Target, now time.Time) Decision {
	if t.Journal.Malformed != nil && t.Record == nil {
		return Decision{Verb: VerbRest} // Decide reports this for the whole node. A repair on record continues to its end
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

// clampOwn corrects times in the future in the target's record, as Target.Clamp does for the
// node's.
func (t *Target) clampOwn(now time.Time) (Decision, bool) {
	r := t.Record
	if r == nil || r.Phase == remediations.PhaseExhausted || (r.Phase == remediations.PhaseActing && r.Back == nil) {
		return Decision{}, false
	}
	p := t.PolicyOf(r)
	c, wrong := t.Config.Clamped(p, r, now)
	return Decision{Verb: VerbWait, Record: c, Policy: p, Recheck: now, Message: "times from the future on record are set to now"}, wrong
}

// Tidied consumes the approval of the repair that begins. It also removes those of the alerts that
// have ended and that the repair no longer refers to. was is the repair before the decision.
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

// untouched reports whether nothing was done yet, so that the repair yields if only another alert
// may continue.
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

// leave ends what this node has about a target that it no longer owns. The poll writes the target's
// alerts on the node that owns it now.
func (t *Target) leave(why string, now time.Time) Decision {
	d := Decision{Verb: VerbRest, Message: why}
	if t.Record != nil {
		d = t.End(remediations.OutcomeSuperseded, why, now)
	}
	d.Prune = append(d.Prune, remediations.KeysOf(t.Alerts)...)
	return d
}

// pointers returns pointers into the slice of alerts.
func pointers(alerts []remediations.Alert) []*remediations.Alert {
	out := make([]*remediations.Alert, len(alerts))
	for i := range alerts {
		out[i] = &alerts[i]
	}
	return out
}
