package lifecycle

import "drydock.dev/drydock/remediations"

// Doable reports whether the step can be carried out: the plan still has it, a provider is
// configured, the node is not refused, and the repair has not tried it yet. r is nil if there is no
// repair.
func (s *State) Doable(p *remediations.Policy, r *remediations.Record, ref remediations.StepRef) bool {
	if refuses := s.Config.Remediation(ref.Name).Refuses; refuses != nil && refuses(s.Node) != "" {
		return false
	}
	if r.SwitchedOff() != nil && s.Config.Remediation(ref.Name).PowersOff {
		return false // the machine is off already
	}
	if r != nil && r.Policy == p.Name && (r.Tried(ref) || r.Spent(s.Config, p, ref)) {
		return false
	}
	step, _ := p.StepAt(ref) // a step that the plan lacks has no attempts
	return ref.Attempt <= step.Attempts && s.Config.Provides(step)
}

// FirstStep returns the first step of the plan that can be carried out. r may be nil.
func (s *State) FirstStep(p *remediations.Policy, r *remediations.Record) (remediations.StepRef, bool) {
	return s.StepFrom(p, r, 0)
}

// NextStep returns the next attempt of the same step or, if there is none, the next step that can
// be carried out.
func (s *State) NextStep(p *remediations.Policy, r *remediations.Record, after remediations.StepRef) (remediations.StepRef, bool) {
	again := remediations.StepRef{Index: after.Index, Name: after.Name, Attempt: after.Attempt + 1}
	if s.Doable(p, r, again) {
		return again, true
	}
	return s.StepFrom(p, r, after.Index+1)
}

// StepFrom returns the first attempt that can be carried out, from the plan's step at this index.
func (s *State) StepFrom(p *remediations.Policy, r *remediations.Record, index int) (remediations.StepRef, bool) {
	for i := index; i < len(p.Plan); i++ {
		for attempt := 1; attempt <= p.Plan[i].Attempts; attempt++ { // earlier repairs may have used the first attempts
			ref := remediations.StepRef{Index: i, Name: p.Plan[i].Name, Attempt: attempt}
			if s.Doable(p, r, ref) && !s.idle(p, r, i) {
				return ref, true
			}
		}
	}
	return remediations.StepRef{}, false
}

// idle reports whether the step only prepares later steps that cannot be carried out. So a node is
// not drained without need.
func (s *State) idle(p *remediations.Policy, r *remediations.Record, index int) bool {
	if s.Config.Remediation(p.Plan[index].Name).Once || index == len(p.Plan)-1 {
		return false
	}
	_, more := s.StepFrom(p, r, index+1)
	return !more
}
