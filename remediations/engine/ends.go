package engine

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

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
		changed = l.Uncancel(n, e.Cause) // the repair acted, so the alert is no longer cancelled
	}
	return ok || changed
}

type endsOn struct {
	node *corev1.Node
	ends []ledger.End
}

type cancelOver struct {
	node  *corev1.Node
	alert string
	at    time.Time
}

func (p *pass) noteEnds(n *corev1.Node, d lifecycle.Decision) {
	if len(d.Ends) > 0 {
		p.ends = append(p.ends, endsOn{n, d.Ends})
	}
	for _, alert := range d.CancelsOver {
		key := remediations.AlertPrefix + alert
		if _, still := p.latest(n).Annotations[key]; still && slices.Contains(d.Prune, key) {
			continue // the Node could not be written
		}
		p.cancelsOver = append(p.cancelsOver, cancelOver{n, alert, p.now})
	}
}

// learn saves what this pass found, in one write. If the save fails, the next pass finds the same
// ends on the Nodes again. cancelsOver stays in memory, because no Node shows these cancels any
// more.
func (p *pass) learn() {
	if p.ledger == nil {
		return
	}
	gpus := p.fleet.GPUsVersion()
	if len(p.ends)+len(p.cancelsOver) > 0 || p.gpusSeen != gpus { // most passes find nothing, and a copy of the ledger is large
		if !p.learnOut.due(p.now) {
			p.retry(p.learnOut)
			return
		}
		if l := p.learned(gpus); l != nil && !p.saveLearned(l) {
			return
		}
	}
	p.learnOut.over()
	p.cancelsOver, p.gpusSeen, p.knowsAll = nil, gpus, p.knowsAll || p.word != nil
}

// saveLearned reads the ledger again after a failed save, so that repairs do not wait for it: the
// API server may still accept the save that a decision needs.
func (p *pass) saveLearned(l *ledger.Ledger) bool {
	out := p.ledgerOut
	err := p.save(l)
	switch {
	case err == nil:
		return true
	case errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound):
		return false
	}
	p.ledgerOut = out
	p.learnOut.failed(p.Clock.Now(), err, outageLongest)
	p.retry(p.learnOut)
	p.loadLedger(p.ctx)
	return false
}

// learned returns nil if the ledger already has all that this pass found.
func (p *pass) learned(gpus int) *ledger.Ledger {
	l, changed, room := p.ledger.Clone(), false, ledger.Room(p.stored)
	for _, on := range p.ends {
		for _, e := range on.ends {
			changed = l.Found(p.Config, on.node, e, &room, p.now) || changed
		}
	}
	for _, over := range p.cancelsOver {
		if known := l.CancelKnown(over.node, over.alert, p.now, 0); known != nil && !known.At.After(over.at) {
			changed = l.Uncancel(over.node, over.alert) || changed
		}
	}
	if p.gpusSeen != gpus {
		if seen := p.roster.SeenGPUs(l); seen != nil {
			l.GPUs, changed = seen, true
		}
	}
	if !changed {
		return nil
	}
	return l
}
