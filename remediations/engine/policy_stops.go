package engine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// reset carries out a person's reset of the node: it removes the node's record, and what the ledger
// has counted for the node. It returns false if the ledger or the Node could not be written.
func (p *pass) reset(t *subject, d lifecycle.Decision) (wrote bool) {
	// The ledger is changed first. The person's request stays on the Node until the record is
	// removed. So if a crash interrupts the reset, the next leader does it again.
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

// refusesAccount reports whether the provider has refused Drydock's account in calls for two
// different targets. One refusal may concern only that machine, or be a single mistake. An accepted
// call shows that the account works, and starts the count again.
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

// stop marks the policy in the ledger as stopped if its provider refuses Drydock's account.
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

// forget saves in the ledger what a person requested on the Node: stopped policies continue, the
// machine has fewer GPUs from now on, and cancels of repairs end. It reports whether the ledger was
// saved. If not, the request must stay on the Node.
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
