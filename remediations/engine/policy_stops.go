package engine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// reset removes the node's record, and what the ledger counts for the node, because a person
// requested it.
func (p *pass) reset(t *subject, d lifecycle.Decision) (wrote bool) {
	// The ledger's counts go first. The person's request stays on the Node until the record is
	// removed. So a reset that a crash interrupts is done again.
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

// refusesAccount reports whether the provider has refused its account for two different targets.
// One refusal may concern that one machine, or be a single mistake. An accepted call shows that the
// account works.
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

// stop stops the policy in the ledger if its provider refuses the account.
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

// forget carries out in the ledger what a person requested on the Node: stopped policies continue,
// the machine has fewer GPUs from now on, and cancels end. It reports whether that is saved. Only
// then may the request be removed from the Node.
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
