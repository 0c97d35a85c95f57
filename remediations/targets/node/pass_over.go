package node

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// passOver skips the present step of the plan, because it would be refused or because this node
// does not need it. The plan continues with the next step. passOver writes this into the record
// before anything else, so that it is reported once. It returns nil if this repair has issued no
// step and the plan has no other step.
func (s *state) passOver(c *lifecycle.Candidate, pending *remediations.Record, reason remediations.Reason, f *lifecycle.Finding) *lifecycle.Decision {
	r := pending.Clone()
	r.Unreached, r.Alone = 0, 0
	r.Passed = append(r.Passed, remediations.Passed{Index: c.Step.Index, Name: c.Step.Name, Why: text.Line(f.Message, remediations.PassedWhy)})
	step, more := s.StepFrom(c.Policy, r, c.Step.Index+1)
	switch {
	case !more && len(r.All()) == 0:
		return nil
	case !more:
		d := of(s.State, r).exhaust(c.Policy, c.Now)
		return &d
	}
	r.Step = step
	message := fmt.Sprintf("%s is passed over: %s; %s is next", c.Step.Name, f.Message, step.Name)
	r.Hold = &remediations.Hold{Reason: reason, Message: text.Line(message, 400), Since: remediations.Instant(c.Now)}
	return &lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: reason, Message: message, Policy: c.Policy, Record: r, Recheck: c.Now.Add(time.Second)}
}

// passes reports whether the record r skips more steps than the record on the Node. The plan then
// continues.
func (s *state) passes(r *remediations.Record) bool {
	before := 0
	if had := s.Record; had != nil {
		before = len(had.Passed)
	}
	return r != nil && len(r.Passed) > before
}

// passedOver returns the steps that the repair has skipped, and why. The text continues a list of
// attempts.
func passedOver(r *remediations.Record) string {
	var out strings.Builder
	for _, p := range r.Passed {
		fmt.Fprintf(&out, "; %s was passed over: %s", p.Name, p.Why)
	}
	return out.String()
}

// part returns the part of the node that the step is about, in brackets: a systemd unit, a
// DaemonSet or a template. It is empty if the plan names none.
func part(c *lifecycle.Candidate) string {
	of := c.Policy.Plan[c.Step.Index]
	if part := of.Unit + of.DaemonSet + of.Template.String(); part != "" {
		return " (" + part + ")"
	}
	return ""
}
