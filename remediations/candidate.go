package remediations

import "time"

// candidate is one repair that might act now, as the guards see it.
type candidate struct {
	*State
	now    time.Time
	policy *Policy
	step   StepRef
	// alert is the repair's, request what a person asked for; a repair has one of the two.
	alert   *Alert
	request string
	// kind is what it is a repair of, and subject that target in a sentence.
	kind    Kind
	subject string
	// target is the one that is not the node itself; nil: it is the node.
	target *Target
	// spent says why there is no further attempt; empty: there may be.
	spent   string
	verdict Verdict
	// repair is the id of the repair that would act, where it has acted before; empty: it has not.
	repair string
	// own is the id under which it would act, new or not: what was counted for it does not hold it.
	own string
}

func (c *candidate) remediation() Remediation { return Registry[c.step.Name] }

// record is the repair of its target; nil: there is none.
func (c *candidate) record() *Record {
	if c.target == nil {
		return c.Journal.Record
	}
	return c.target.Record
}

// acted says that the repair has issued a step already.
func (c *candidate) acted() bool { return c.repair != "" }

// by says by what right it would act.
func (c *candidate) by() string {
	if c.request != "" {
		return "as " + RequestKey + " asked: " + c.request
	}
	return "by policy " + c.policy.Name
}
