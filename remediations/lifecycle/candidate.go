package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Candidate is one repair that may act now, as the guards see it.
type Candidate struct {
	*State
	Now    time.Time
	Policy *remediations.Policy
	Step   remediations.StepRef
	// Alert is the alert of the repair, and Request what a person requested. A repair has one of
	// the two.
	Alert   *remediations.Alert
	Request string
	// Kind is the kind of the target. Subject names the target in messages.
	Kind    remediations.Kind
	Subject string
	// target is what the candidate repairs; nil: unknown, if a guard is asked alone.
	target Describer
	is     Description
	// Spent is why no further attempt is made; empty: one may be.
	Spent   string
	Verdict alerts.Verdict
	// Repair is the id of the repair if it has acted before; empty: it has not.
	Repair string
	// Own is the id of the repair, new or not. What was counted for this id does not hold the
	// candidate.
	Own string
}

// CandidateOf returns the candidate for a target that is only described. Base.Candidate returns one
// for a target with a lifecycle.
func CandidateOf(of Describer, p *remediations.Policy, a *remediations.Alert, cause remediations.Cause, step remediations.StepRef, now time.Time) *Candidate {
	is := of.Describe()
	c := &Candidate{State: of.base().State, Now: now, Policy: p, Step: step, Alert: a, Request: cause.Request, Kind: is.Kind, target: of, is: is, Subject: is.What}
	if c.Snapshot != nil { // undoing moves needs no alert, and Alertmanager may not have been asked yet
		c.Verdict = of.Verdict(cause)
	}
	return c
}

func (c *Candidate) Remediation() remediations.Remediation { return c.Config.Remediation(c.Step.Name) }

// provider returns the provider whose limit the candidate counts for; empty: none.
func (c *Candidate) provider() string {
	return c.Config.ProviderAhead(c.Policy, c.Step.Index, c.Node)
}

// record returns the repair of its target; nil: none.
func (c *Candidate) record() *remediations.Record {
	if c.target == nil {
		return c.Journal.Record
	}
	return c.target.base().Record
}

// Acted reports whether the repair has already issued a step.
func (c *Candidate) Acted() bool { return c.Repair != "" }

// By returns what the candidate acts for: a person's request, or its policy.
func (c *Candidate) By() string {
	if c.Request != "" {
		return "as " + remediations.RequestKey + " asked: " + c.Request
	}
	return "by policy " + c.Policy.Name
}
