package inspect

import (
	"cmp"
	"slices"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	nodes "drydock.dev/drydock/remediations/targets/node"
)

type considered struct {
	*lifecycle.Candidate
	guards []lifecycle.GuardAnswer
}

// decide returns the decision's message if no guard was asked and nothing holds a repair, and
// otherwise "".
func (s *Observation) decide(a *Answer) string {
	d, all := s.consider(s.State, s.State.Journal.Record, nil, func() lifecycle.Decision { return nodes.Decide(s.State, s.Now) })
	return s.conclude(a, d, all)
}

// consider asks the guards about each step that Drydock's decision considers. The plugin cannot
// observe the target. looks has the answers for guards that need this, and precede the guard
// Observing.
func (s *Observation) consider(state *lifecycle.State, r *remediations.Record, looks []lifecycle.GuardAnswer, decide func() lifecycle.Decision) (d lifecycle.Decision, all []considered) {
	state.Asking = func(c *lifecycle.Candidate) {
		answers := c.Explain(s.unseen)
		last := slices.IndexFunc(answers, func(a lifecycle.GuardAnswer) bool { return a.Reason == remediations.ReasonObserving })
		answers = slices.Insert(answers, last, looks...)
		for i := range answers {
			answers[i] = s.recorded(answers[i], r, c)
		}
		copied := *c
		all = append(all, considered{&copied, answers})
	}
	d = decide()
	return d, all
}

// conclude returns the decision's message if no guard was asked and nothing holds a repair, and
// otherwise "".
func (s *Observation) conclude(a *Answer, d lifecycle.Decision, all []considered) string {
	if len(all) == 0 {
		if d.Verb != lifecycle.VerbHold && d.Reason != remediations.ReasonObserving {
			return d.Message
		}
		// The decision is a hold, but no guard was asked. For example, the policy only observes, and has
		// already recorded the step that it would have issued. So there is no step to ask the guards
		// about, and the policy's mode is the hold.
		s.holds(a, &Hold{Reason: d.Reason, Message: d.Message}, d.Policy)
		return ""
	}
	// The answer is about one candidate, usually the last one. Drydock considers the alerts in order
	// and stops at the first alert that allows a step. It considers the plan's steps that it skips
	// before the step that it would issue. If the decision is a hold, the answer is about the first
	// candidate with the same reason.
	c := all[len(all)-1]
	if i := slices.IndexFunc(all, func(c considered) bool { return d.Verb == lifecycle.VerbHold && c.heldBy(d.Reason) }); i >= 0 {
		c = all[i]
	}
	a.Policy, a.Guards = c.Policy.Name, c.guards
	a.Next = c.Step.String()
	if a.Provider, _ = s.State.Config.ProviderOf(c.Step.Name, s.Node); c.Step.Index < len(c.Policy.Plan) {
		a.Provider = cmp.Or(c.Policy.Plan[c.Step.Index].Provider, a.Provider)
	}
	alert := ""
	if c.Alert != nil {
		alert = c.Alert.Fingerprint
	}
	first := lifecycle.FirstHold(c.guards)
	switch {
	case first != nil:
		s.holds(a, &Hold{Reason: first.Reason, Message: first.Message, Until: first.Until, alert: alert}, c.Policy)
	case d.Verb == lifecycle.VerbHold && !slices.ContainsFunc(c.guards, func(a lifecycle.GuardAnswer) bool { return a.Reason == d.Reason }):
		s.holds(a, &Hold{Reason: d.Reason, Message: d.Message}, c.Policy)
	default:
		a.State, a.When = UnderRepair, "at Drydock's next pass: no guard that could be asked here holds the repair"
	}
	return ""
}

func (c considered) heldBy(reason remediations.Reason) bool {
	first := lifecycle.FirstHold(c.guards)
	return first != nil && first.Reason == reason
}

func (s *Observation) holds(a *Answer, h *Hold, p *remediations.Policy) {
	if said := s.Ledger.Said(s.Node, s.Now); said != nil && said.Reason == h.Reason {
		h = said // its message says more than the guard's: who set it, and until when
	}
	a.State, a.Hold, a.When = Held, h, "when nothing holds the repair"
	name := ""
	if p != nil {
		name = p.Name
	}
	a.Change = s.change(h, name)
}
