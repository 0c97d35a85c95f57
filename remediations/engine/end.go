package engine

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

func (p *pass) end(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	e, whose := d.Ended, ""
	if k.slots != nil && k.slots.ending != nil && !k.slots.ending(p, t, d) {
		return false
	}
	if !p.persist(t, d) {
		return false
	}
	if t.Record != nil {
		p.endSilence(t.Record.Silence)
	}
	p.metrics.Over(e)
	if k.ofWhat != nil {
		whose = k.ofWhat(e)
	}
	p.emit(k, t, e.ID, Event{
		Warning: e.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(e.Outcome), Action: e.ID, Of: TrailOfEntry(e),
		Note: endNote(e, whose, d.Message),
	})
	if k.slots == nil || e.Outcome == remediations.OutcomeObserved { // the ledger does not know repairs that were only observed
		p.again = true // another repair may now begin
		return true
	}
	if p.ledger == nil {
		return true
	}
	l := p.ledger.Clone()
	freed := l.Release(e.ID)
	if k.slots.ended(p, l, t, d) || freed {
		_ = p.save(l) // a failure is logged, and the ledger is read again
	}
	k.slots.vacate(p, t.of.node)
	p.again = true // another repair may wait for the slot
	return true
}

// endingNode updates the ledger before the Node shows the end. A repair that runs out of steps
// counts as a failure of its policy.
func (p *pass) endingNode(t *subject, d lifecycle.Decision) bool {
	if d.Ended.Outcome == remediations.OutcomeExhausted && !p.finished(d.Ended) {
		return false
	}
	return !ranOutBefore(t.Record, d.Ended) || p.forgetCures(t.Node, t.Record.Policy)
}

func (p *pass) endedNode(l *ledger.Ledger, t *subject, d lifecycle.Decision) (changed bool) {
	n, e := t.Node, d.Ended
	if len(e.Steps) > 0 { // a repair without steps shows nothing about its policy
		finished, cured := !ranOutBefore(t.Record, e) && l.Finished(e.Policy, e.ID, e.Outcome), l.Cured(remediations.MachineOf(n), e, p.fleet.Trials(e.ID))
		changed = finished || cured
		if d.Record != nil && d.Record.Phase == remediations.PhaseExhausted {
			l.RanOut(n, d.Record)
			changed = true
		}
	}
	return p.endedOn(l, n, e) || changed
}

// ranOutBefore reports whether the repair was already counted as a failure of its policy.
func ranOutBefore(r *remediations.Record, e *remediations.Entry) bool {
	return r != nil && r.ID == e.ID && r.Phase == remediations.PhaseExhausted
}

// finished counts a failure of the policy before the Node shows it. If it returns false, nothing
// was counted, and the next pass decides again.
func (p *pass) finished(e *remediations.Entry) bool {
	if p.ledger == nil {
		p.failed = true
		return false
	}
	l := p.ledger.Clone()
	return !l.Finished(e.Policy, e.ID, e.Outcome) || p.save(l) == nil
}

// forgetCures removes from the ledger how earlier repairs of this machine ended, before the Node
// shows the end of this repair. If it returns false, the next pass decides again.
func (p *pass) forgetCures(n *corev1.Node, policy string) bool {
	if p.ledger == nil {
		p.failed = true
		return false
	}
	l := p.ledger.Clone()
	l.ForgetCures(n, policy)
	return p.save(l) == nil
}

// relapsed handles a cure that did not last. It counts as a failure of its policy, and opens the
// breaker that it had closed. The ledger is saved before the Node, so that a crash does not count
// the failure twice.
func (p *pass) relapsed(s *lifecycle.State, c *ledger.Cure) {
	l := p.ledger.Clone()
	l.Relapse(remediations.MachineOf(s.Node), *c)
	p.fleet.Reopen(c.Trials, p.now)
	if p.save(l) != nil {
		return
	}
	p.metrics.ended.WithLabelValues(c.Policy, string(remediations.OutcomeRelapsed)).Inc()
	history := remediations.EncodeEntries(remediations.MarkRelapsed(s.Journal.Whole(), c.Repair))
	if len(s.Journal.Whole()) > 0 {
		_, _ = p.write(p.ctx, s.Node, NodeChange{Annotations: map[string]*string{remediations.HistoryKey: &history}}) // if this fails, the next write has it
	}
	p.Events.Event(s.Node.Name, Event{
		Warning: true, Reason: "RepairRelapsed", Action: c.Repair, Of: Trail{Repair: c.Repair, Policy: c.Policy},
		Note: fmt.Sprintf("repair %s by policy %s ended at %s, and its alert has come back: the plan continues after %s", c.Repair, c.Policy, c.At.Format(time.RFC3339), c.Step),
	})
	p.again = true
}

func endNote(e *remediations.Entry, whose, message string) string {
	did := e.Steps.String()
	if e.Outcome == remediations.OutcomeObserved {
		did = "nothing was done"
	}
	return fmt.Sprintf("repair %s%s by policy %s after %s (%s): %s", e.ID, whose, e.Policy, text.Duration(e.Ended.Sub(e.Began).Round(time.Second)), did, message)
}

func (p *pass) endSilence(id string) {
	if id != "" && p.Silencer != nil {
		p.Beside(func() { p.expireSilence(id) })
	}
}

// expireSilence asks Alertmanager to end the silence now. If that fails, the silence ends at its
// own end time.
func (p *pass) expireSilence(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.CallTimeout)
	defer cancel()
	if err := p.Silencer.Expire(ctx, id); err != nil {
		p.Log.Error(err, "the silence of a repair could not be removed; it expires by itself", "silence", id)
	}
}

func (p *pass) save(l *ledger.Ledger) error {
	if p.knowsAll {
		l.PruneEnds(p.Config, p.now)
	}
	l.Status.Breakers = maps.Clone(p.fleet.Breakers)
	return p.saveLedger(p.ctx, l, p.ledgerAt)
}

func (p *pass) supersede(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	r := d.Superseded
	if !p.persist(t, d) {
		return false
	}
	if d.Ended != nil {
		p.metrics.Over(d.Ended)
		p.release(k, t.of.node, r.ID)
	}
	p.endSilence(r.Silence)
	p.Events.Event(t.of.node, Event{Warning: true, Reason: "RepairSuperseded", Action: r.ID, Of: trailOf(r), Note: fmt.Sprintf("repair %s by policy %s: %s", r.ID, r.Policy, d.Message)})
	p.again = true // the next pass decides about the Node without the record
	return true
}
