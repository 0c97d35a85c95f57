package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Target is one object that Drydock may repair. The type of each kind embeds Base, calls Base.Bind,
// and defines the methods that Base lacks.
type Target interface {
	Describer
	Observer
	Repairer
}

// Description has the facts and words that guards and messages use for one target.
type Description struct {
	Kind remediations.Kind
	// What is the target in messages, for example "location eu".
	What string
	// Of names the target in messages about an attempt, as in "mark-ready:1 of POD". It may be
	// empty.
	Of string
	// Asked is the system that Drydock observes, for example "the mesh".
	Asked string
	// Next is another attempt in messages, as in "before the next move".
	Next string
	// Awaits is what follows a call in messages, for example "waiting for proof".
	Awaits string
	// Looking is the message while Drydock observes the target before a step, Checking while it
	// does for the proof. Each is empty for a kind that is not observed then.
	Looking, Checking string
	// Unknown holds the repair while the target's state is unknown.
	Unknown remediations.Reason
	// Apart is the least time between an attempt that was refused or not made, and the next. A kind
	// without its own uses LookAgain.
	Apart time.Duration
	// Soon are reasons that may end soon, so that the target is observed more often.
	Soon []remediations.Reason
	// TakesOff means that decisions about this target remove people's expired annotations. If it is
	// false, such an annotation holds the target until it is removed.
	TakesOff bool
	// OnRequest means that a person can request the repair.
	OnRequest bool
	// Own are general guards that this kind replaces by its method Guard, because their facts do
	// not exist for this kind.
	Own []remediations.Reason
}

// Describer is the part of a Target that a Candidate needs.
type Describer interface {
	Describe() Description
	// PolicyFor returns nil if the record's policy is no longer configured.
	PolicyFor(r *remediations.Record) *remediations.Policy
	// Causes returns the alerts about the target, in the order of decisions.
	Causes() []*remediations.Alert
	// Verdict returns what the Alertmanagers say about the alert that caused the repair.
	Verdict(cause remediations.Cause) alerts.Verdict
	// Guard returns what this kind's own guard for the reason finds, or nil. It replaces the guards
	// in Description.Own and those of ofItsKind.
	Guard(reason remediations.Reason, c *Candidate) *Finding

	base() *Base
}

// Observer is the part of a Target that reads the last observation of it.
type Observer interface {
	// SeenAt returns when the last observation began. Zero means never.
	SeenAt() time.Time
	// Elsewhere returns why the target no longer belongs to this node, or "".
	Elsewhere() string
	// Likely returns the step that the alert would probably lead to, so that another system can be
	// asked in advance. Zero means that there is none to ask.
	Likely(p *remediations.Policy, a *remediations.Alert, now time.Time) remediations.StepOn
	// Examine is called if no guard holds the step, or only Observing does. It returns a decision
	// in place of the step, or a reason and a finding that hold it. It returns neither if the step
	// may be issued.
	Examine(c *Candidate, pending *remediations.Record, observing bool) (*Decision, remediations.Reason, *Finding)
	// Asks adds the facts that the step needs and that are too old. It returns the step about which
	// other systems must be asked, or zero.
	Asks(c *Candidate, ask *Ask) (step remediations.StepOn)
	// Well describes the target, and reports whether the observation shows it to be well.
	Well() (string, bool)
	// Missing returns what the proof of the cure still lacks.
	Missing() string
	// Evidence checks the other facts that prove the cure. Facts from before due do not count. A
	// non-empty against says why they contradict it. If neither result is set, Evidence has written
	// into d what Drydock waits for.
	Evidence(d *Decision, p *remediations.Policy, due, now time.Time) (there bool, against string)
	// Sound reports whether the end of the alert shows that the target is well.
	Sound() bool
}

// Repairer is the part of a Target that decides about its repair.
type Repairer interface {
	// First may return a decision before the target's alerts are considered.
	First(now time.Time) (Decision, bool)
	// Consider decides about one alert.
	Consider(p *remediations.Policy, a *remediations.Alert, now time.Time) Decision
	// Named writes the target's name into a new record.
	Named(r *remediations.Record)
	// Begun reports whether the repair has changed something. After that, another alert cannot
	// replace it.
	Begun(r *remediations.Record) bool
	// Intend adds the kind's own data to the attempt.
	Intend(c *Candidate, pending *remediations.Record, d *Decision)
	Hold(c *Candidate, pending *remediations.Record, reason remediations.Reason, f *Finding) Decision
	// Until returns when a hold for the reason ends at the latest.
	Until(c *Candidate, pending *remediations.Record, reason remediations.Reason) time.Time
	// Acting decides while the step is running.
	Acting(now time.Time) Decision
	// Overdue reports whether the deadline is later than any correct one can be.
	Overdue(r *remediations.Record, now time.Time) bool
	// Await waits for the proof after a step was issued.
	Await(now time.Time) Decision
	// Proceed decides after an attempt that did not prove a cure in time.
	Proceed(now time.Time) Decision
	// Rest decides about a repair that ran out of steps and waits for a person.
	Rest(now time.Time) Decision
	// Instead may return a decision in place of a further attempt.
	Instead(p *remediations.Policy, now time.Time) (Decision, bool)
	// Spent reports whether further attempts are forbidden, even if the plan has more.
	Spent() bool
	Expired(now time.Time) Decision
	// Cure returns the outcome of a repair whose target is well, and how it became well.
	Cure(p *remediations.Policy) (remediations.Outcome, string)
	// Closing adds the kind's own data to the end of a repair.
	Closing(d *Decision, now time.Time)
	// Tidy adds the annotations to remove from the Node, because they were used or have ended.
	Tidy(d *Decision, now time.Time)
}
