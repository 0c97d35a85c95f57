package inspect

import (
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// judge gives repairs on record precedence over the engine's decision. If the node itself needs no
// repair, the state is that of its other targets.
func (s *Observation) judge(t *Why) {
	for _, r := range t.Repairs {
		switch {
		case r.Record == nil: // an unreadable record holds all repairs of the node
			s.holds(&t.Answer, &Hold{Reason: remediations.ReasonRecordMalformed, Message: r.Problem}, nil)
			return
		case r.Record.Phase.InFlight():
			t.State, t.Subject, t.Hold, t.Change = UnderRepair, about(r), nil, ""
			s.after(t, r.Record)
			return
		case r.Record.Phase == remediations.PhaseExhausted && r.Target == nodeTarget:
			t.State, t.Next, t.When, t.Provider = Held, "", "", ""
			t.Hold, t.Change = spent(r.Record), afterFix(t.Node)
			return
		}
	}
	for _, target := range t.Targets {
		if t.State == Well && target.State != Well {
			t.Subject, t.Answer = target.Subject, target.Answer
		}
	}
	for _, r := range t.Repairs {
		switch {
		case t.State != Well:
		case r.Record.Phase == remediations.PhaseExhausted:
			t.Subject = about(r)
			s.holds(&t.Answer, spent(r.Record), s.policy(r.Record.Policy))
			t.Change, t.When = afterFix(t.Node), ""
		case r.Hold != nil:
			t.Subject = about(r)
			s.holds(&t.Answer, r.Hold, s.policy(r.Record.Policy))
		}
	}
	if s.State != nil || t.State != Well {
		return
	}
	// Without the configuration, the plugin cannot make Drydock's decision. It uses only the Node
	// and the ledger.
	alerts := firing(s.Node)
	if len(alerts) == 0 {
		return
	}
	t.State, t.When = UnderRepair, "nothing that could be read holds the repair"
	if h := s.Ledger.HoldNow(s.Node, alerts[0].Policy, nil, s.Now); h != nil {
		s.holds(&t.Answer, h, &remediations.Policy{Name: alerts[0].Policy})
	}
}

func about(r Repair) string {
	if r.Target == nodeTarget {
		return ""
	}
	return r.Name()
}

func (s *Observation) policy(name string) *remediations.Policy {
	if s.Config == nil {
		return &remediations.Policy{Name: name}
	}
	return s.Config.Core.PolicyOf(name, s.Node)
}

func (s *Observation) after(t *Why, r *remediations.Record) {
	t.Policy, t.Next, t.Provider, t.Guards = r.Policy, "", "", []lifecycle.GuardAnswer{}
	t.When = "this attempt ends by " + Stamp(r.Deadline)
	if !r.Deadline.After(s.Now) {
		t.When = "Drydock decides about this attempt now: its time ended at " + Stamp(r.Deadline)
	}
	if s.State == nil || r.Pod != nil || r.Location != "" {
		return
	}
	if p := s.policy(r.Policy); p != nil {
		if next, more := s.State.NextStep(p, r, r.Step); more {
			t.Next = next.String()
			t.Provider, _ = s.State.Config.ProviderOf(next.Name, s.Node)
			t.When = "if the node is not healthy by " + Stamp(r.Deadline)
			if !r.Deadline.After(s.Now) {
				t.When = "at Drydock's next pass: the node had time until " + Stamp(r.Deadline) + " to become healthy"
			}
		}
	}
}
