package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Target is one object that Drydock may repair: a node, a sidecar or a mesh location. Live and
// DecideTarget decide about it. The type of a kind embeds Base, which has the methods that are the
// same for most kinds, and calls Bind. The type itself has the methods that Base lacks, and those
// that differ from Base.
type Target interface {
	Describer
	Observer
	Repairer
}

// Description has the facts and the words that guards and messages use for one target.
type Description struct {
	Kind remediations.Kind
	// What is the target's name in messages, for example "location eu".
	What string
	// Of follows the step in messages about one attempt, as in "mark-ready:1 of POD". If Of is
	// empty, these messages name only the step.
	Of string
	// Asked is the system that Drydock observes and whose answer it waits for, for example "the
	// mesh".
	Asked string
	// Next is the noun for a further attempt, for example "move".
	Next string
	// Awaits says what Drydock waits for after a call, for example "waiting for proof".
	Awaits string
	// Looking and Checking are the messages while Drydock observes the target: Looking before a
	// repair, Checking for the proof of its cure. Both are empty for a kind that Drydock does not
	// observe.
	Looking, Checking string
	// Unknown is the reason that holds the repair while the target's state is unknown.
	Unknown remediations.Reason
	// Apart is the least time between a refused or withheld attempt and the next attempt. A kind
	// without a wait of its own uses the constant LookAgain.
	Apart time.Duration
	// Soon are the reasons whose holds may end soon. While one of them holds the repair, Drydock
	// observes the target more often.
	Soon []remediations.Reason
	// TakesOff reports whether the decision about this target removes people's annotations from
	// the Node when their time has ended. All other targets are held until the annotations are
	// removed.
	TakesOff bool
	// OnRequest reports whether a person can request the target's repair.
	OnRequest bool
	// Own are the reasons of general guards that the method Guard replaces. These guards read facts
	// that do not exist for this kind.
	Own []remediations.Reason
}

// Describer has the part of a Target that describes it: its policy, its alerts, and the objections
// of its kind to a repair. A Candidate needs only this part.
type Describer interface {
	Describe() Description
	// PolicyFor returns the record's policy. It returns nil if the policy is no longer configured.
	PolicyFor(r *remediations.Record) *remediations.Policy
	// Causes returns the alerts about the target. Drydock considers them in this order.
	Causes() []*remediations.Alert
	// Verdict returns the Alertmanagers' verdict on the cause.
	Verdict(cause remediations.Cause) alerts.Verdict
	// Guard returns this kind's own finding against the candidate for the reason. It returns nil if
	// there is none. It is called for the guards ofItsKind and for those in Description.Own.
	Guard(reason remediations.Reason, c *Candidate) *Finding

	base() *Base
}

// Observer has the part of a Target that reads the last observation of it.
type Observer interface {
	// SeenAt returns when the last observation of the target began. Zero means never observed.
	SeenAt() time.Time
	// Elsewhere returns why the target no longer belongs to this node, according to the
	// observation. It returns "" if the target still belongs to this node.
	Elsewhere() string
	// Likely returns the step that the alert would lead to, so that another system can be asked
	// about this step in advance. It returns zero if no other system has to be asked.
	Likely(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn
	// Examine checks the step against the observation. It is called when no guard holds the step,
	// or only the guard Observing does. It returns a decision that replaces the step, or a reason
	// and a finding that hold the step, or neither.
	Examine(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding)
	// Asks adds to ask the facts that the step depends on and that are unknown or too old. It
	// returns the step that other systems must be asked about, or zero.
	Asks(c *Candidate, ask *Ask) (step remediations.StepOn)
	// Well returns a description of the target, and whether the observation shows it to be well.
	Well() (string, bool)
	// Missing returns what is still missing for the proof of the cure.
	Missing() string
	// Evidence checks the other facts that prove the cure. Facts from before due do not count.
	// there is true if the facts support the cure. against is the reason if they contradict it. If
	// both are empty, Evidence has written into d what Drydock waits for.
	Evidence(d *Decision, p *remediations.Policy, due, now time.Time) (there bool, against string)
	// Sound reports whether the end of the alert shows that the target is well.
	Sound() bool
}

// Repairer has the part of a Target that decides about its repair.
type Repairer interface {
	// First may decide before the alerts are considered. It returns false if the alerts decide.
	First(now time.Time) (Decision, bool)
	// Consider decides about one alert.
	Consider(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision
	// Named writes the target's name into the new record of a repair.
	Named(r *remediations.Record)
	// Begun reports whether the repair has already changed something. A repair that has begun does
	// not yield to another alert.
	Begun(r *remediations.Record) bool
	// Intend adds the kind's own data for the attempt to the decision and to the record's new
	// intent.
	Intend(c *Candidate, pending *remediations.Record, d *Decision)
	// Hold returns the decision to hold the candidate.
	Hold(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision
	// Until returns when a hold for the reason ends at the latest.
	Until(c *Candidate, pending *remediations.Record, reason remediations.Reason) time.Time
	// Acting continues a repair whose step is under way.
	Acting(now time.Time) Decision
	// Overdue reports whether the record's deadline is later than any correct deadline can be.
	Overdue(r *remediations.Record, now time.Time) bool
	// Await waits for the proof that the issued attempt cured the target.
	Await(now time.Time) Decision
	// Proceed continues after an attempt without a proof of the cure.
	Proceed(now time.Time) Decision
	// Rest decides about an exhausted repair, which waits for a person.
	Rest(now time.Time) Decision
	// Instead may decide something other than a further attempt. It returns false if it does not.
	Instead(p *remediations.Policy, now time.Time) (Decision, bool)
	// Spent reports whether further attempts are forbidden, even if the plan has more.
	Spent() bool
	// Expired ends a repair that was held until its deadline.
	Expired(now time.Time) Decision
	// Cure returns the outcome of a repair whose target is well, and how the target became well.
	Cure(p *remediations.Policy) (remediations.Outcome, string)
	// Closing adds the kind's own data to the decision that ends the repair and to its entry in the
	// history.
	Closing(d *Decision, now time.Time)
	// Tidy adds to the decision which keys to remove from the Node, because they were used or have
	// ended.
	Tidy(d *Decision, now time.Time)
}
