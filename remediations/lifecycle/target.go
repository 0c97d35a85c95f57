package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Target is one target of a kind, as Live and DecideTarget decide about it. A kind embeds Base,
// which has the methods that are the same for most kinds, and calls Bind. It writes the methods
// that Base lacks, and those that differ for it.
type Target interface {
	Describer
	Observer
	Repairer
}

// Description is what messages and guards say about a target.
type Description struct {
	Kind remediations.Kind
	// What names the target. Of names what an attempt belongs to; empty: an attempt is named by its
	// step alone. Asked is the system that is observed and waited for. Next names a further
	// attempt. Awaits is what Drydock waits for after a call. Looking and Checking say that Drydock
	// observes the target, before a repair and for its proof; empty for a kind that Drydock does not
	// observe.
	What, Of, Asked, Next, Awaits, Looking, Checking string
	// Unknown is the reason that holds the target while its state is unknown.
	Unknown remediations.Reason
	// Apart is the least time between a refused or withheld attempt and the next one. A kind
	// without a wait of its own uses the constant LookAgain.
	Apart time.Duration
	// Soon are the holds that may end soon, so that the target is observed again soon.
	Soon []remediations.Reason
	// TakesOff: the decision about the target removes people's annotations from the Node when their
	// time has ended, so that they no longer hold it. Other targets are held until the annotations
	// are removed. OnRequest: a person can request its repair.
	TakesOff, OnRequest bool
	// Own are the reasons that Guard answers in place of the general guard, because what that guard
	// reads does not exist for this kind.
	Own []remediations.Reason
}

// Describer says what the target is, which policy and alerts it has, and what its kind has against
// a repair. A candidate needs only this part.
type Describer interface {
	Describe() Description
	// PolicyFor returns the policy of the record; nil: it is no longer configured.
	PolicyFor(r *remediations.Record) *remediations.Policy
	// Causes returns the alerts about the target, in the order of consideration.
	Causes() []*remediations.Alert
	// Verdict returns the Alertmanagers' verdict on the cause.
	Verdict(cause remediations.Cause) alerts.Verdict
	// Guard returns what this kind alone has against the candidate for the reason, see the table of
	// guards; nil: nothing.
	Guard(reason remediations.Reason, c *Candidate) *Finding

	base() *Base
}

// Observer reads what was observed of the target.
type Observer interface {
	// SeenAt is when the last observation of the target began; zero: it was not observed.
	SeenAt() time.Time
	// Elsewhere returns why the target no longer belongs to this node, by the observation; empty:
	// it does.
	Elsewhere() string
	// Likely returns the step that the alert would lead to, if another system must be asked about
	// the step first; zero: no system must be.
	Likely(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn
	// Examine checks what the observation says against the step, when no guard or only Observing
	// holds it. It returns a decision that replaces the step, or a reason and finding that hold it,
	// or neither.
	Examine(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding)
	// Asks adds to ask what else the step depends on and is unknown or too old. It returns the step
	// that other systems are asked about; zero: no system must be.
	Asks(c *Candidate, ask *Ask) (step remediations.StepOn)
	// Well describes the target, and reports whether it is well by the observation.
	Well() (string, bool)
	// Missing returns what the proof still lacks.
	Missing() string
	// Evidence reads what else the proof needs, not older than due. there: nothing contradicts the
	// cure. against: why the target is not well. Neither: the decision says what Drydock waits for.
	Evidence(d *Decision, p *remediations.Policy, due, now time.Time) (there bool, against string)
	// Sound reports whether the target is well when its alert has ended.
	Sound() bool
}

// Repairer decides about the repair of the target.
type Repairer interface {
	// First decides before any alert; false: the alerts decide.
	First(now time.Time) (Decision, bool)
	// Consider decides about an alert.
	Consider(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision
	// Named writes the target into the new record of a repair.
	Named(r *remediations.Record)
	// Begun reports whether something was already done, so that the repair does not yield to
	// another alert.
	Begun(r *remediations.Record) bool
	// Intend adds to the decision and to the record's new intent what the kind needs for the
	// attempt.
	Intend(c *Candidate, pending *remediations.Record, d *Decision)
	// Hold returns the decision to hold the candidate. Until returns how long this hold may last.
	Hold(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision
	Until(c *Candidate, pending *remediations.Record, reason remediations.Reason) time.Time
	// Acting continues a repair whose step is under way.
	Acting(now time.Time) Decision
	// Overdue reports whether the record's deadline is further away than any deadline can be.
	Overdue(r *remediations.Record, now time.Time) bool
	// Await waits for the proof of the attempt that was issued. Proceed continues after an attempt
	// whose proof did not come. Rest leaves an exhausted repair to a person.
	Await(now time.Time) Decision
	Proceed(now time.Time) Decision
	Rest(now time.Time) Decision
	// Instead does something in place of another attempt; false: nothing. Spent reports that no
	// further attempt is made, even if the plan has more. Expired ends a repair that was held until
	// its deadline.
	Instead(p *remediations.Policy, now time.Time) (Decision, bool)
	Spent() bool
	Expired(now time.Time) Decision
	// Cure returns whether this repair cured the target, and how.
	Cure(p *remediations.Policy) (remediations.Outcome, string)
	// Closing adds what is special to the kind to the end of the repair and to the history's entry.
	Closing(d *Decision, now time.Time)
	// Tidy removes from the Node, in the decision's write, what has had its effect or has ended.
	Tidy(d *Decision, now time.Time)
}
