package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Candidate is one step of a repair that Drydock may issue now, with all facts that guards read.
type Candidate struct {
	*State
	Now    time.Time
	Policy *remediations.Policy
	Step   remediations.StepRef
	// Alert is the alert that caused the repair. It is nil if a person requested the repair, or if
	// the Node no longer has the alert.
	Alert *remediations.Alert
	// Request is the value of a person's request. It is empty if an alert caused the repair.
	Request string
	// Kind is the kind of the target. Subject names the target in messages.
	Kind    remediations.Kind
	Subject string
	// target is the target of the repair. It is nil in tests of a single guard.
	target Describer
	is     Description
	// Spent is the reason why no further attempt may be made. It is empty if the plan allows a
	// further attempt.
	Spent string
	// Verdict is the Alertmanagers' verdict on the alert that caused the repair.
	Verdict alerts.Verdict
	// Repair is the id of the repair if it has already issued a step. It is empty otherwise.
	Repair string
	// Own is the id of this repair, even if it is new. Guards that count other repairs skip this
	// id.
	Own string
}

// CandidateOf returns the candidate for the step of the policy p. It needs only the describing part
// of a target. Base.Candidate does the same for a whole Target.
func CandidateOf(of Describer, p *remediations.Policy, a *remediations.Alert, cause remediations.Cause, step remediations.StepRef, now time.Time) *Candidate {
	is := of.Describe()
	c := &Candidate{State: of.base().State, Now: now, Policy: p, Step: step, Alert: a, Request: cause.Request, Kind: is.Kind, target: of, is: is, Subject: is.What}
	if c.Snapshot != nil { // it may be nil while moves are undone: that needs no alert
		c.Verdict = of.Verdict(cause)
	}
	return c
}

func (c *Candidate) Remediation() remediations.Remediation { return c.Config.Remediation(c.Step.Name) }

// provider returns the name of the provider whose limit applies to the candidate. It returns "" if
// no provider's limit applies.
func (c *Candidate) provider() string {
	return c.Config.ProviderAhead(c.Policy, c.Step.Index, c.Node)
}

// record returns the record of the target's repair, or nil if the target has none.
func (c *Candidate) record() *remediations.Record {
	if c.target == nil {
		return c.Journal.Record
	}
	return c.target.base().Record
}

// Acted reports whether the repair has already issued a step.
func (c *Candidate) Acted() bool { return c.Repair != "" }

// By returns the end of a sentence that names the cause: a person's request, or the policy.
func (c *Candidate) By() string {
	if c.Request != "" {
		return "as " + remediations.RequestKey + " asked: " + c.Request
	}
	return "by policy " + c.Policy.Name
}
