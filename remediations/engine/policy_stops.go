package engine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

func (p *pass) reset(s *lifecycle.State, d lifecycle.Decision) {
	// The counts go first. The request stays on the Node until the record is removed, so a reset
	// that a crash interrupts is done again.
	l := p.ledger.Clone() // without a ledger nothing is reset
	if r := s.Journal.Record; r != nil {
		l.Release(r.ID)
	} else {
		l.ReleaseMachine(s.Node)
	}
	l.Forget(s.Node)
	for _, policy := range d.Allow {
		l.Allow(policy)
	}
	if p.save(l) != nil || p.persist(s, d) == nil {
		return
	}
	p.attempts.settle(func(_ string, one attempted) bool { return one.node == s.Node.Name }) // a record that could not be read is dropped with its ID
	p.emitOnce(s.Node.Name, "", Event{Reason: "RepairCancelled", Action: "Reset", Note: d.Message, Of: trailOf(s.Journal.Record)})
	p.vacate(s.Node.Name)
}

// refusesAccount reports whether the provider has refused the account for two machines. A refusal
// for one machine may concern that machine alone, or be a single mistake. An accepted call shows
// that the account is good.
func refusesAccount(doubted map[string]target, c called) bool {
	switch first, known := doubted[c.provider]; {
	case c.call.Outcome == remediations.CallAccepted:
		delete(doubted, c.provider)
		return false
	case !c.call.Stop:
		return false
	case known && first != c.of:
		return true
	}
	doubted[c.provider] = c.of
	return false
}

// stop stops a policy whose provider refuses the account.
func (p *pass) stop(d lifecycle.Decision) {
	if d.Stop == "" || d.Policy == nil || p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	l.Stop(d.Policy.Name, d.Stop)
	if p.save(l) == nil {
		p.Events.Event("", Event{Warning: true, Reason: "PolicyStopped", Of: Trail{Policy: d.Policy.Name}, Action: d.Policy.Name, Note: fmt.Sprintf("policy %s is stopped: %s", d.Policy.Name, d.Stop)})
	}
}

// forget lets stopped policies continue, accepts that the machine has fewer GPUs, and ends cancels.
// It returns whether that is durable, so that the request may be removed from the Node.
func (p *pass) forget(n *corev1.Node, d lifecycle.Decision) bool {
	l := p.ledger.Clone()
	for _, policy := range d.Allow {
		l.Allow(policy)
	}
	if d.FewerGPUs {
		l.ForgetGPUs(n)
	}
	for _, alert := range d.Uncancel {
		l.Uncancel(n, alert)
	}
	return p.save(l) == nil
}
