package remediations

import (
	"fmt"
	"time"
)

// candidate is one repair that might act now, as the guards see it.
type candidate struct {
	*State
	now    time.Time
	policy *Policy
	step   StepRef
	// alert is the repair's, request what a person asked for; a repair has one of the two.
	alert   *Alert
	request string
	// pod is whose sidecar it is, location whose leader, and move what would be done about that; none: the repair is the
	// node's.
	pod      *Pod
	location string
	move     Move
	// spent says why there is no further attempt; empty: there may be.
	spent   string
	verdict verdict
	// repair is the id of the repair that would act, where it has acted before; empty: it has not.
	repair string
	// own is the id under which it would act, new or not: what was counted for it does not hold it.
	own string
}

func (c *candidate) remediation() Remediation { return Registry[c.step.Name] }
func (c *candidate) disruptive() bool         { return c.remediation().Disruptive }

// ofNode: the repair is the node's own.
func (c *candidate) ofNode() bool { return c.pod == nil && c.location == "" }

// disruptsNode: it takes the node away for a while, which is what the limits of nodes count.
func (c *candidate) disruptsNode() bool { return c.disruptive() && c.ofNode() }

// acted says that the repair has issued a step already.
func (c *candidate) acted() bool { return c.repair != "" }

// what it would act on.
func (c *candidate) what() string {
	switch {
	case c.pod != nil:
		return "the sidecar of " + c.pod.String()
	case c.location != "":
		return fmt.Sprintf("%s to %s in location %s", c.move.From, c.move.To, c.location)
	}
	return c.Node.Name
}

// by says by what right it would act.
func (c *candidate) by() string {
	if c.request != "" {
		return "as " + RequestKey + " asked: " + c.request
	}
	return "by policy " + c.policy.Name
}
