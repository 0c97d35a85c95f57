package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// passedWhy bounds what a record keeps of the reason of each step that was passed over.
const passedWhy = 160

// Passed is a step of the plan that this repair does not take, and why.
type Passed struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	Why   string `json:"why"`
}

func (r *Record) passed(ref StepRef) bool {
	return slices.ContainsFunc(r.Passed, func(p Passed) bool { return p.Index == ref.Index && p.Name == ref.Name })
}

// passOver goes on to the next step instead of waiting for one that can only be refused, or that is not due for this node.
// It is on record before anything else is done, and said once. nil: no step follows, and none was issued yet.
func (s *State) passOver(c *Candidate, pending *Record, reason Reason, f *Finding) *Decision {
	r := pending.Clone()
	r.Passed = append(r.Passed, Passed{Index: c.Step.Index, Name: c.Step.Name, Why: clip(f.Message, passedWhy)})
	known := *s
	known.Journal.Record = r
	step, more := known.stepFrom(c.Policy, c.Step.Index+1)
	switch {
	case !more && !c.Acted():
		return nil
	case !more:
		d := known.exhaust(c.Policy, c.Now)
		return &d
	}
	r.Step = step
	message := fmt.Sprintf("%s is passed over: %s; %s is next", c.Step.Name, f.Message, step.Name)
	r.Hold = &Hold{Reason: reason, Message: clip(message, 400), Since: Instant(c.Now)}
	return &Decision{Verb: Keep, Reason: reason, Message: message, Policy: c.Policy, Record: r, Recheck: c.Now.Add(time.Second)}
}

// passedOver names the steps that were passed over, behind what was tried.
func (r *Record) passedOver() string {
	var out strings.Builder
	for _, p := range r.Passed {
		fmt.Fprintf(&out, "; %s was passed over: %s", p.Name, p.Why)
	}
	return out.String()
}

// part is what of the node the step is about, where only the plan says it.
func (c *Candidate) part() string {
	if of := c.Policy.Plan[c.Step.Index]; of.Unit+of.DaemonSet != "" {
		return " (" + of.Unit + of.DaemonSet + ")"
	}
	return ""
}

// EvidenceOf is what is kept of a host's last words: their end, on one line.
func EvidenceOf(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	one := clip(strings.Join(lines, " | "), len(text)+3*len(lines))
	if len(one) > maxEvidence {
		one = "…" + strings.ToValidUTF8(one[len(one)-maxEvidence:], "")
	}
	return one
}
