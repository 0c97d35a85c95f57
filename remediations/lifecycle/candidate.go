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
	// Alert caused the repair. It is nil if a person requested the repair, or if the Node no longer
	// has the alert.
	Alert *remediations.Alert
	// Request is a person's request, or empty.
	Request string
	// Subject names the target in messages.
	Kind    remediations.Kind
	Subject string
	// target is nil in tests of a single guard.
	target Describer
	is     Description
	// Spent is why no further attempt may be made, or empty.
	Spent string
	// Verdict is what the Alertmanagers say about the alert.
	Verdict alerts.Verdict
	// Repair is the id of the repair if it has already issued a step, or empty.
	Repair string
	// Own is the id of this repair, even if it is new. Guards that count other repairs skip it.
	Own string
}

// CandidateOf returns the candidate for a step of the policy. It needs only the describing part of
// a target.
func CandidateOf(of Describer, p *remediations.Policy, a *remediations.Alert, cause remediations.Cause, step remediations.StepRef, now time.Time) *Candidate {
	is := of.Describe()
	c := &Candidate{State: of.base().State, Now: now, Policy: p, Step: step, Alert: a, Request: cause.Request, Kind: is.Kind, target: of, is: is, Subject: is.What}
	if c.Snapshot != nil { // it may be nil while moves are undone: that needs no alert
		c.Verdict = of.Verdict(cause)
	}
	return c
}

func (c *Candidate) Remediation() remediations.Remediation { return c.Config.Remediation(c.Step.Name) }

func (c *Candidate) provider() string {
	return c.Config.ProviderAhead(c.Policy, c.Step.Index, c.Node)
}

func (c *Candidate) record() *remediations.Record {
	if c.target == nil {
		return c.Journal.Record
	}
	return c.target.base().Record
}

// Acted reports whether the repair has already issued a step.
func (c *Candidate) Acted() bool { return c.Repair != "" }

// By returns the end of a sentence that names the cause of the repair.
func (c *Candidate) By() string {
	if c.Request != "" {
		return "as " + remediations.RequestKey + " asked: " + c.Request
	}
	return "by policy " + c.Policy.Name
}
