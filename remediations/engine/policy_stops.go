package engine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

func (p *pass) reset(t *subject, d lifecycle.Decision) (wrote bool) {
	// The ledger is changed first. The person's request stays on the Node until the record is
	// removed, so that after a crash the next leader resets again.
	l := p.ledger.Clone() // the core resets only with a ledger
	if r := t.Record; r != nil {
		l.Release(r.ID)
	} else {
		l.ReleaseMachine(t.Node)
	}
	l.Forget(t.Node)
	for _, policy := range d.Allow {
		l.Allow(policy)
	}
	if p.save(l) != nil || !p.persist(t, d) {
		return false
	}
	p.attempts.dismiss(func(_ string, one attempted) bool { return one.node == t.of.node }) // the removed record was perhaps unreadable, so the ID of its attempt is unknown
	p.emitOnce(t.of.node, "", Event{Reason: "RepairCancelled", Action: "Reset", Note: d.Message, Of: trailOf(t.Record)})
	p.vacate(t.of.node)
	return true
}

// refusesAccount reports whether calls for two different targets were refused because of the
// account. One refusal may concern only that machine. An accepted call starts the count again.
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

// forget saves in the ledger what a person requested on the Node. If that fails, the request must
// stay on the Node.
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
