package remediations

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Doable says that the step stands in the plan as named, that this installation can carry it out, and that it takes
// this node.
func (s *State) Doable(p *Policy, ref StepRef) bool {
	if refuses := s.Config.Remediation(ref.Name).Refuses; refuses != nil && refuses(s.Node) != "" {
		return false
	}
	if r := s.Journal.Record; r != nil && r.Policy == p.Name && (r.passed(ref) || r.spent(s.Config, p, ref)) {
		return false
	}
	return ref.Index < len(p.Plan) && p.Plan[ref.Index].Name == ref.Name && ref.Attempt <= p.Plan[ref.Index].Attempts &&
		s.Config.Provides(p.Plan[ref.Index])
}

// FirstStep is the first step of the plan that can be carried out.
func (s *State) FirstStep(p *Policy) (StepRef, bool) { return s.StepFrom(p, 0) }

// NextStep is what comes after an issued attempt: the step's next attempt, else the next step that can be carried out.
func (s *State) NextStep(p *Policy, after StepRef) (StepRef, bool) {
	again := StepRef{Index: after.Index, Name: after.Name, Attempt: after.Attempt + 1}
	if s.Doable(p, again) {
		return again, true
	}
	return s.StepFrom(p, after.Index+1)
}

func (s *State) StepFrom(p *Policy, index int) (StepRef, bool) {
	for i := index; i < len(p.Plan); i++ {
		for attempt := 1; attempt <= p.Plan[i].Attempts; attempt++ { // earlier repairs may have issued the first ones
			ref := StepRef{Index: i, Name: p.Plan[i].Name, Attempt: attempt}
			if s.Doable(p, ref) && !s.idle(p, i) {
				return ref, true
			}
		}
	}
	return StepRef{}, false
}

// idle says that the step only prepares others, and that none of those can be done: nobody wants a node emptied for
// nothing. One that the plan ends with is what somebody wants.
func (s *State) idle(p *Policy, index int) bool {
	if s.Config.Remediation(p.Plan[index].Name).Once || index == len(p.Plan)-1 {
		return false
	}
	_, more := s.StepFrom(p, index+1)
	return !more
}

// Words are what the record says of why nothing is done.
func (h *Hold) Words() string {
	if h == nil {
		return "no reason on record"
	}
	return h.Message
}

func (h *Hold) same(o *Hold) bool {
	if h == nil || o == nil {
		return h == o
	}
	untilSame := (h.Until == nil) == (o.Until == nil) && (h.Until == nil || h.Until.Equal(*o.Until))
	return h.Reason == o.Reason && untilSame
}

// LastDone is the attempt that was issued last, as "reboot:1": that of the intent, where Step still names it; while
// Pending, Step already names the next one. An earlier version did not write down a step that its plan repeats.
func LastDone(r *Record) string {
	if len(r.Done) == 0 || r.Intent.Of(r, r.Step) {
		return r.Step.String()
	}
	return r.Done[len(r.Done)-1]
}

func (r *Record) passed(ref StepRef) bool {
	return slices.ContainsFunc(r.Passed, func(p Passed) bool { return p.Index == ref.Index && p.Name == ref.Name })
}

// unknownWait is for a step of another version of Drydock, which this one does not know.
const unknownWait = 10 * time.Minute

// WaitOf is how long the proof of a step that is on record may take: as its plan says or, where that has it no more or there is
// no plan, as the remediation itself.
func (c *Config) WaitOf(p *Policy, step StepRef) time.Duration {
	if p != nil && step.Index < len(p.Plan) && p.Plan[step.Index].Name == step.Name {
		return p.Plan[step.Index].Wait
	}
	return cmp.Or(c.Remediation(step.Name).Wait, unknownWait)
}

// spent says that the plan is past the attempt: an earlier repair, from which this one goes on, has issued it. A step that
// only prepares others is done again: the node was given back in between.
func (r *Record) spent(c *Config, p *Policy, ref StepRef) bool {
	a := r.After
	if a == nil || !c.Remediation(ref.Name).Once || a.Step.Index >= len(p.Plan) || p.Plan[a.Step.Index].Name != a.Step.Name {
		return false // or the plan has become another one
	}
	return ref.Index < a.Step.Index || (ref.Index == a.Step.Index && ref.Attempt <= a.Step.Attempt)
}

func joined(steps []string) string { return strings.Join(steps, ", ") }

// StepName is the remediation's name in an attempt written as "reboot:1".
func StepName(done string) string { name, _, _ := strings.Cut(done, ":"); return name }
