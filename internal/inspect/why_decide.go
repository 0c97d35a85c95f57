package inspect

import (
	"slices"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	nodes "drydock.dev/drydock/remediations/targets/node"
)

// considered is a candidate for a step with what the guards say of it.
type considered struct {
	*lifecycle.Candidate
	guards []lifecycle.GuardAnswer
}

// decide runs Drydock's own decision about the node, and asks the guards about the step that it considers. It returns what the
// decision says if no guard was asked and nothing holds the node.
func (s *Observation) decide(t *Why) string {
	var all []considered
	s.State.Asking = func(c *lifecycle.Candidate) {
		answers := c.Explain(s.unseen)
		for i := range answers {
			answers[i] = s.told(answers[i], c.Policy.Name)
		}
		copied := *c
		all = append(all, considered{&copied, answers})
	}
	d := nodes.Decide(s.State, s.Now)
	if len(all) == 0 {
		if d.Verb != lifecycle.VerbHold && d.Reason != remediations.ReasonObserving {
			return d.Message
		}
		// A repair that was only observed has no step to ask about, but its policy would repair if it enforced.
		s.holds(t, &Hold{Reason: d.Reason, Message: d.Message}, d.Policy)
		return ""
	}
	// Of several alerts the first that may act, or the first that is held; of a plan whose steps were passed over, the last step.
	c := all[len(all)-1]
	if i := slices.IndexFunc(all, func(c considered) bool { return d.Verb == lifecycle.VerbHold && c.heldBy(d.Reason) }); i >= 0 {
		c = all[i]
	}
	t.Policy, t.Guards = c.Policy.Name, c.guards
	t.Next = c.Step.String()
	t.Provider, _ = s.State.Config.ProviderOf(c.Step.Name, s.Node)
	first := lifecycle.FirstHold(c.guards)
	switch {
	case first != nil:
		s.holds(t, &Hold{Reason: first.Reason, Message: first.Message, Until: first.Until}, c.Policy)
	case d.Verb == lifecycle.VerbHold && !slices.ContainsFunc(c.guards, func(a lifecycle.GuardAnswer) bool { return a.Reason == d.Reason }):
		s.holds(t, &Hold{Reason: d.Reason, Message: d.Message}, c.Policy)
	default:
		t.State, t.When = UnderRepair, "as soon as Drydock looks: no guard that was seen holds it"
	}
	return ""
}

func (c considered) heldBy(reason remediations.Reason) bool {
	first := lifecycle.FirstHold(c.guards)
	return first != nil && first.Reason == reason
}

func (s *Observation) holds(t *Why, h *Hold, p *remediations.Policy) {
	t.State, t.Hold, t.When = Held, h, "when nothing holds it any more"
	name := ""
	if p != nil {
		name = p.Name
	}
	t.Change = s.change(h, name)
}
