package node

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// passOver skips a step that would be refused or that this node does not need. The record is
// written first, so that this is reported once. It returns nil if the repair has issued no step and
// the plan has no other.
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

func (s *state) passes(r *remediations.Record) bool {
	before := 0
	if had := s.Record; had != nil {
		before = len(had.Passed)
	}
	return r != nil && len(r.Passed) > before
}

// passedOver returns a text that continues a list of attempts.
func passedOver(r *remediations.Record) string {
	var out strings.Builder
	for _, p := range r.Passed {
		fmt.Fprintf(&out, "; %s was passed over: %s", p.Name, p.Why)
	}
	return out.String()
}

// part returns the unit, DaemonSet or template of the step in brackets, or nothing.
func part(c *lifecycle.Candidate) string {
	of := c.Policy.Plan[c.Step.Index]
	if part := of.Unit + of.DaemonSet + of.Template.String(); part != "" {
		return " (" + part + ")"
	}
	return ""
}
