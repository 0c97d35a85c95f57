package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// Candidate is one repair that might act now, as the guards see it.
type Candidate struct {
	*State
	Now    time.Time
	Policy *remediations.Policy
	Step   remediations.StepRef
	// Alert is the repair's, Request what a person asked for; a repair has one of the two.
	Alert   *remediations.Alert
	Request string
	// Kind is what it is a repair of, and Subject that target in a sentence.
	Kind    remediations.Kind
	Subject string
	// target is the one that it repairs; nil: nothing is known of it, for a guard that is asked alone.
	target *Target
	// Spent says why there is no further attempt; empty: there may be.
	Spent   string
	Verdict alerts.Verdict
	// Repair is the id of the repair that would act, where it has acted before; empty: it has not.
	Repair string
	// Own is the id under which it would act, new or not: what was counted for it does not hold it.
	Own string
}

func (c *Candidate) Remediation() remediations.Remediation { return c.Config.Remediation(c.Step.Name) }

// record is the repair of its target; nil: there is none.
func (c *Candidate) record() *remediations.Record {
	if c.target == nil {
		return c.Journal.Record
	}
	return c.target.Record
}

// Acted says that the repair has issued a step already.
func (c *Candidate) Acted() bool { return c.Repair != "" }

// By says by what right it would act.
func (c *Candidate) By() string {
	if c.Request != "" {
		return "as " + remediations.RequestKey + " asked: " + c.Request
	}
	return "by policy " + c.Policy.Name
}
