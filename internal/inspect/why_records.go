package inspect

import (
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// judge says the state by the records, which count before what a decision would be.
func (s *Observation) judge(t *Why) {
	for _, r := range t.Repairs {
		about := ""
		if r.Target != "node" {
			about = r.Name()
		}
		switch {
		case r.Record == nil:
			t.Subject = "" // such a record holds the whole node
			s.holds(t, &Hold{Reason: remediations.ReasonRecordMalformed, Message: r.Problem}, nil)
			return
		case r.Record.Phase.InFlight():
			t.State, t.Subject, t.Hold, t.Change = UnderRepair, about, nil, ""
			s.after(t, r.Record)
			return
		case r.Record.Phase == remediations.PhaseExhausted && r.Target == "node":
			t.State, t.Subject, t.Next, t.When, t.Provider = Held, "", "", "", ""
			t.Hold, t.Change = spent(r.Record), onceMended(t.Node)
			return
		case r.Record.Phase == remediations.PhaseExhausted && t.State == Well:
			t.Subject = about
			s.holds(t, spent(r.Record), s.policy(r.Record.Policy))
			t.Change, t.When = onceMended(t.Node), ""
		case r.Hold != nil && t.State == Well:
			t.Subject = about
			s.holds(t, r.Hold, s.policy(r.Record.Policy))
		}
	}
	if s.State != nil || t.State != Well {
		return
	}
	// Without the configuration nothing was decided: what the Node and the ledger say is all that is known.
	alerts := Firing(s.Node)
	if len(alerts) == 0 {
		return
	}
	t.State, t.When = UnderRepair, "nothing that was seen holds it"
	if h := s.Ledger.HoldNow(s.Node, alerts[0].Policy, nil, s.Now); h != nil {
		s.holds(t, h, &remediations.Policy{Name: alerts[0].Policy})
	}
}

func (s *Observation) policy(name string) *remediations.Policy {
	if s.Config == nil {
		return &remediations.Policy{Name: name}
	}
	return s.Config.Core.PolicyOf(name, s.Node)
}

// after says what comes after the attempt that is under way.
func (s *Observation) after(t *Why, r *remediations.Record) {
	t.Policy, t.Next, t.Provider, t.Guards = r.Policy, "", "", []lifecycle.GuardAnswer{}
	t.When = "over by " + Stamp(r.Deadline)
	if !r.Deadline.After(s.Now) {
		t.When = "Drydock decides about it now: its time was over at " + Stamp(r.Deadline)
	}
	if s.State == nil || r.Pod != nil || r.Location != "" {
		return
	}
	if p := s.policy(r.Policy); p != nil {
		if next, more := s.State.NextStep(p, r, r.Step); more {
			t.Next = next.String()
			t.Provider, _ = s.State.Config.ProviderOf(next.Name, s.Node)
			t.When = "if the node is not well by " + Stamp(r.Deadline)
			if !r.Deadline.After(s.Now) {
				t.When = "as soon as Drydock looks: the node had until " + Stamp(r.Deadline) + " to be well"
			}
		}
	}
}
