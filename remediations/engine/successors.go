package engine

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
)

// successors continues the repairs whose Node is gone because its machine was replaced. Only the
// ledger still has their records.
func (p *pass) successors() {
	if p.ledger == nil {
		return
	}
	var nodes []*corev1.Node
	if len(p.ledger.Orphans) > 0 {
		nodes = p.roster.Nodes()
	}
	alive := map[string]bool{}
	for _, o := range slices.Clone(p.ledger.Orphans) {
		alive[o.Record.ID] = true
		if p.ledger == nil {
			continue // the ledger could not be saved at the previous orphan's end
		}
		if n := p.roster.Node(o.Node); n == nil || o.Gone(n) {
			p.successor(&o, nodes)
		}
	}
	for id := range p.orphans {
		if !alive[id] {
			delete(p.orphans, id)
		}
	}
}

func (p *pass) successor(o *ledger.Orphan, nodes []*corev1.Node) {
	m := p.orphans[o.Record.ID]
	p.waiting = true
	if m == nil {
		m = &memory{}
		p.orphans[o.Record.ID] = m
		trailOf(&o.Record).Log(p.Log).Info("a Node is gone; its repair continues until a new machine has replaced it", "node", o.Node)
	}
	p.tally.repairs[[2]string{o.Record.Policy, string(remediations.PhaseVerifying)}]++
	n := p.core.successorOf(o, m.replacement, nodes)
	s := p.successorState(o, m, n)
	d := node.DecideSuccessor(s, o, p.now)
	if d.Ask.Lease && n != nil {
		p.readLease(n.Name)
		s = p.successorState(o, m, n)
		d = node.DecideSuccessor(s, o, p.now)
	}
	if signs := witnessOf(d, n); d.Ask.Witness && len(signs) > 0 {
		p.readWitness(p.remember(n.Name), n, signs)
	}
	m.found(d, p.now)
	if d.Ask.Alerts {
		p.askAlerts(m)
	}
	if d.Ask.Replacement {
		p.askProof(m, &o.Record)
	}
	p.recheck(d)
	if d.Verb == lifecycle.VerbEnd {
		p.endOrphan(o, n, d)
		return
	}
	p.noteOrphan(o, m.replacement)
}

// noteOrphan copies from the provider's answer what people would otherwise have to look up.
func (p *pass) noteOrphan(o *ledger.Orphan, said *remediations.Replacement) {
	if said == nil || !said.About(o.Record.Intent) {
		return
	}
	note := text.Line(said.Missing, 400)
	if said.NoneNeeded && p.Config.PromisesNone(o.Record.Step.Name, o.Record.Intent) {
		note = node.NoneNeeded + "; the repair ends when this has been so for a while and the alert is gone"
	}
	l := p.ledger.Clone()
	for i := range l.Orphans {
		if of := &l.Orphans[i]; of.Record.ID == o.Record.ID && of.Record.Note != note {
			of.Record.Note = note
			_ = p.save(l) // a failure is logged, and a later pass writes the note
			return
		}
	}
}

func (p *pass) successorState(o *ledger.Orphan, m *memory, n *corev1.Node) *lifecycle.State {
	p.forgetTorn(m)
	s := &lifecycle.State{
		Config: p.Config, Node: n, Journal: remediations.Journal{Record: &o.Record}, Snapshot: p.word, Fleet: p.fleet, Ledger: p.ledger,
		Heartbeats: p.heartbeats, Replacement: m.replacement, LookSince: m.lookSince, WellSince: m.wellSince, WellHeard: m.wellHeard,
	}
	if n != nil {
		p.forgetTorn(p.remember(n.Name))
		s.Lease, s.Read = p.remember(n.Name).lease, p.remember(n.Name).read
		s.Journal.History = remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])
	}
	return s
}

// endOrphan writes the end into the history of the new Node before it removes the repair from the
// ledger. If Drydock crashes between the two, it finds the end in the history.
func (p *pass) endOrphan(o *ledger.Orphan, n *corev1.Node, d lifecycle.Decision) {
	e, about := d.Ended, ""
	if n != nil {
		about, e.Machine = n.Name, remediations.MachineOf(n) // the history belongs to the new machine
		history := remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])
		if !slices.ContainsFunc(history, func(h remediations.Entry) bool { return h.ID == e.ID }) {
			text := remediations.EncodeHistory(history, *e)
			if _, err := p.write(p.ctx, n, NodeChange{Annotations: map[string]*string{remediations.HistoryKey: &text}}); err != nil {
				return
			}
		}
	}
	if n == nil && e.Outcome == remediations.OutcomeRecovered {
		p.fleet.Cured(e.ID)
	}
	l := p.ledger.Clone()
	l.Release(e.ID)
	l.Finished(e.Policy, e.ID, e.Outcome)
	if p.save(l) != nil {
		return
	}
	p.vacate(o.Node)
	p.metrics.Over(e)
	p.Events.Event(about, Event{
		Warning: e.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(e.Outcome), Action: e.ID, Of: TrailOfEntry(e),
		Note: fmt.Sprintf("repair %s of Node %s by policy %s after %s (%s): %s", e.ID, o.Node, e.Policy, text.Duration(e.Ended.Sub(e.Began).Round(time.Second)), e.Steps, d.Message),
	})
	id := o.Record.Silence
	if m := p.orphans[o.Record.ID]; id == "" && m != nil {
		id = m.silence
	}
	p.endSilence(id)
	p.again = true
}

// replacing copies the silence's ID into the ledger: once the Node is deleted, only the ledger has
// it.
func (p *pass) replacing(r *remediations.Record) {
	if p.ledger == nil || r.Silence == "" {
		return
	}
	l := p.ledger.Clone()
	for i := range l.Orphans {
		if o := &l.Orphans[i]; o.Record.Intent.ID == r.Intent.ID && o.Record.Silence != r.Silence {
			o.Record.Silence = r.Silence
			_ = p.save(l) // a failure is logged; the silence expires by itself
			return
		}
	}
}

// silenced remembers a silence whose call was answered after the Node was deleted.
func (e *Engine) silenced(c lifecycle.Call) {
	if e.ledger == nil || c.Silence == "" {
		return
	}
	for _, o := range e.ledger.Orphans {
		if o.Record.Intent.ID != c.IntentID {
			continue
		}
		if e.orphans[o.Record.ID] == nil {
			e.orphans[o.Record.ID] = &memory{}
		}
		e.orphans[o.Record.ID].silence = c.Silence
	}
}
