package engine

import (
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// endedOn notes in the ledger what holds the machine's next repair after this one. It says whether there is something.
func (p *pass) endedOn(l *ledger.Ledger, n *corev1.Node, e *remediations.Entry) (changed bool) {
	end, ok := ledger.EndOf(p.Config, *e)
	if ok {
		l.Ended(p.Config, n, end, p.now)
	}
	switch {
	case e.Cause == "":
	case e.By == remediations.ByPerson:
		of := remediations.Alert{Fingerprint: e.Cause, Policy: e.Policy}
		l.Ended(p.Config, n, ledger.CancelOf(of, remediations.CancelledRepair{ID: e.ID, At: e.Ended}, p.now), p.now)
		return true
	case len(e.Steps) > 0:
		changed = l.Uncancel(n, e.Cause) // it acted, so the alert is cancelled no more
	}
	return ok || changed
}

// rememberEnds puts into the ledger what the decision found on the Node and not in the ledger. If it cannot be saved, the next decision
// finds it again.
func (p *pass) rememberEnds(n *corev1.Node, d lifecycle.Decision) {
	if p.ledger == nil || len(d.Ends)+len(d.Uncancel) == 0 {
		return
	}
	l, changed := p.ledger.Clone(), len(d.Ends) > 0
	for _, e := range d.Ends {
		l.Ended(p.Config, n, e, p.now)
	}
	for _, alert := range d.Uncancel {
		changed = l.Uncancel(n, alert) || changed
	}
	if changed {
		_ = p.save(l)
	}
}
