package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Target is one object that Drydock may repair: a node, a sidecar or a mesh location. Live and
// DecideTarget decide about it. The Go type of each kind embeds Base, which has the methods that
// are the same for most kinds. That type calls Base.Bind, and defines the other methods itself.
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
	// Of names the target in messages about one attempt, after the step, as in "mark-ready:1 of
	// POD". If Of is empty, these messages name only the step.
	Of string
	// Asked is the system that Drydock observes and whose answer it waits for, for example "the
	// mesh".
	Asked string
	// Next is what messages call another attempt, as in "before the next move".
	Next string
	// Awaits says what Drydock waits for after a call, for example "waiting for proof".
	Awaits string
	// Looking is the message while Drydock observes the target before a step. It is empty for a
	// kind that Drydock does not observe. Checking is the message while Drydock observes the target
	// for the proof of its cure. It is empty for a kind with another proof.
	Looking, Checking string
	// Unknown is the reason that holds the repair while the target's state is unknown.
	Unknown remediations.Reason
	// Apart is the least time between an attempt that was refused or not made, and the next
	// attempt. A kind without a wait of its own uses the constant LookAgain.
	Apart time.Duration
	// Soon are the reasons whose holds may end soon. While one of them holds the repair, Drydock
	// observes the target more often.
	Soon []remediations.Reason
	// TakesOff reports whether decisions about this target remove people's annotations from the
	// Node when their time has ended. If not, such an annotation holds the target until it is
	// removed.
	TakesOff bool
	// OnRequest reports whether a person can request the target's repair.
	OnRequest bool
	// Own are the reasons of those general guards that this kind replaces by its method Guard.
	// These guards read facts that do not exist for this kind.
	Own []remediations.Reason
}

// Describer is the part of a Target that describes it: its policy, its alerts, and its kind's own
// guards. A Candidate needs only this part.
type Describer interface {
	Describe() Description
	// PolicyFor returns the record's policy. It returns nil if the policy is no longer configured.
	PolicyFor(r *remediations.Record) *remediations.Policy
	// Causes returns the alerts about the target. Drydock considers them in this order.
	Causes() []*remediations.Alert
	// Verdict returns the Alertmanagers' verdict on the alert that caused the repair.
	Verdict(cause remediations.Cause) alerts.Verdict
	// Guard returns the finding of this kind's own guard for the reason, or nil if that guard does
	// not hold the candidate. Guards that ofItsKind creates call this method. It also replaces the
	// guards whose reasons are in Description.Own.
	Guard(reason remediations.Reason, c *Candidate) *Finding

	base() *Base
}

// Observer is the part of a Target that reads the last observation of it.
type Observer interface {
	// SeenAt returns when the last observation of the target began. Zero means never observed.
	SeenAt() time.Time
	// Elsewhere returns the reason why, according to the observation, the target no longer belongs
	// to this node. It returns "" if it still does.
	Elsewhere() string
	// Likely returns the step that the alert would probably lead to, so that Drydock can ask
	// another system about that step in advance. It returns zero if there is no other system to
	// ask.
	Likely(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn
	// Examine checks the step against the observation. It is called if no guard holds the step, or
	// only the guard Observing does. It returns a decision in place of the step, or a reason and a
	// finding that hold the step. It returns neither if the step may be issued.
	Examine(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding)
	// Asks adds to ask the facts that the step needs and that are unknown or too old. It returns
	// the step about which other systems must be asked, or zero.
	Asks(c *Candidate, ask *Ask) (step remediations.StepOn)
	// Well returns a description of the target, and whether the observation shows it to be well.
	Well() (string, bool)
	// Missing returns what is still missing for the proof of the cure.
	Missing() string
	// Evidence checks the other facts that prove the cure. Facts from before due do not count.
	// there is true if the facts prove the cure. A non-empty against is the reason why they
	// contradict it. If neither is set, Evidence has written into d what Drydock waits for.
	Evidence(d *Decision, p *remediations.Policy, due, now time.Time) (there bool, against string)
	// Sound reports whether the end of the alert shows that the target is well.
	Sound() bool
}

// Repairer is the part of a Target that decides about its repair.
type Repairer interface {
	// First may return a decision before the target's alerts are considered. It returns false if
	// the alerts decide.
	First(now time.Time) (Decision, bool)
	// Consider decides about one alert.
	Consider(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision
	// Named writes the target's name into the new record of a repair.
	Named(r *remediations.Record)
	// Begun reports whether the repair has already changed something. Once it has, another alert
	// cannot replace it.
	Begun(r *remediations.Record) bool
	// Intend adds the kind's own data for the attempt to the decision and to the record's new
	// intent.
	Intend(c *Candidate, pending *remediations.Record, d *Decision)
	// Hold returns the decision to hold the candidate.
	Hold(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision
	// Until returns when a hold for the reason ends at the latest.
	Until(c *Candidate, pending *remediations.Record, reason remediations.Reason) time.Time
	// Acting decides about a repair in the phase Acting: its step is running.
	Acting(now time.Time) Decision
	// Overdue reports whether the record's deadline is later than any correct deadline can be.
	Overdue(r *remediations.Record, now time.Time) bool
	// Await decides about a repair whose step was issued: it waits for the proof that the step
	// cured the target.
	Await(now time.Time) Decision
	// Proceed decides about a repair whose last attempt did not prove a cure in time.
	Proceed(now time.Time) Decision
	// Rest decides about a repair that ran out of steps, and waits for a person.
	Rest(now time.Time) Decision
	// Instead may return a decision in place of a further attempt. Otherwise it returns false.
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
	// Tidy adds to the decision the annotations to remove from the Node, because they were used or
	// have ended.
	Tidy(d *Decision, now time.Time)
}
