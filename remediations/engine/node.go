package engine

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

var nodes = kind{
	of: remediations.KindNode,
	decide: func(e *Engine, t *subject, now time.Time) lifecycle.Decision {
		return e.core.decide(t.State, now)
	},
	ask: (*pass).askNode,
	call: func(p *pass, t *subject, d lifecycle.Decision) string {
		if p.Config.Remediation(d.Record.Step.Name).Once {
			p.callProvider(t.State, d)
		} else {
			p.work(t.Node, d, d.Record)
		}
		return d.Record.Intent.ID
	},
	resume: func(p *pass, t *subject, d lifecycle.Decision) { p.work(t.Node, d, t.Record) },
	slots: &slots{
		mayTake: func(p *pass, t *subject, d lifecycle.Decision) bool {
			if !p.remember(t.of.node).writes.due(p.now) {
				return false // the intent cannot be written now, so the repair must not take a slot
			}
			p.fleet.Try(p.Config.Zone(t.Node), t.of.node, d.Record.ID)
			return true
		},
		occupy: func(p *pass, t *subject, d lifecycle.Decision) {
			p.fleet.Occupy(p.Config, t.Node, p.provider(t.State, d), d.Verb == lifecycle.VerbHold)
		},
		next: func(p *pass, t *subject, d lifecycle.Decision) {
			p.fleet.Next(p.Config, t.Node, p.provider(t.State, d), d.Policy.Mode == remediations.ModeObserve)
		},
		vacate: (*pass).vacate, giveBack: (*pass).giveBackNode, ending: (*pass).endingNode, ended: (*pass).endedNode,
	},
	verified: func(p *pass, d lifecycle.Decision) {
		p.stop(d)
		p.replacing(d.Record)
	},
	counted: (*pass).countNode,
}

// askNode also stops a long-running step that the decision does not continue.
func (p *pass) askNode(t *subject, d *lifecycle.Decision) {
	m := p.remember(t.of.node)
	if p.Decided != nil {
		p.Decided(t.of.node, *d)
	}
	if d.Ask.Replacement {
		p.askProof(m, t.Record)
	}
	if signs := witnessOf(*d, t.Node); d.Ask.Witness && len(signs) > 0 {
		p.readWitness(m, t.Node, signs)
	}
	m.keepWorking(t.State, *d)
	p.complete(m, t.State, d)
	p.waiting = p.waiting || m.work != nil
}

// giveBackNode frees the slot after an attempt that does not count, or after a step that was
// stopped.
func (p *pass) giveBackNode(k *kind, t *subject, d lifecycle.Decision) {
	m, was := p.remember(t.of.node), t.Record
	if was.Phase == remediations.PhaseActing && p.Config.Remediation(was.Step.Name).Once {
		m.call = nil // so that the Event is sent again when the attempt is issued again
		delete(m.emitted, was.Intent.ID+"|RepairStepIssued")
	}
	p.stop(d)
	p.release(k, t.of.node, was.ID)
	if p.ledger == nil || p.ledger.SlotOf(t.of.node) == nil {
		p.fleet.Park(p.Config, t.Node, d.Record)
	}
}

func (p *pass) countNode(t *subject, _ *remediations.Record, d lifecycle.Decision, wrote bool) {
	n, m := t.Node, p.remember(t.of.node)
	if wrote && d.Verb == lifecycle.VerbWait && d.Record != nil && d.Record.Note != "" {
		p.emitOnce(n.Name, d.Record.ID+d.Record.Note, Event{Warning: true, Of: trailOf(d.Record), Reason: "RepairBlocked", Action: d.Record.Intent.ID, Note: fmt.Sprintf("%s of repair %s: %s", d.Record.Step.Name, d.Record.ID, d.Message)})
	}
	p.noteEnds(n, d)
	p.answer(n.Name, d, wrote)
	if m.writes.lasting(p.now) && d.Policy != nil {
		p.tally.holds[[2]string{d.Policy.Name, string(remediations.ReasonBlind)}]++
	}
	m.shown = p.samples(n, p.tallyNode(t.Record, d), d)
	p.tally.show(m.shown)
	p.stand(t, d)
}

func (p *pass) tallyNode(r *remediations.Record, d lifecycle.Decision) *remediations.Record {
	r = afterwards(r, d)
	p.tallied(r, d)
	if d.Verb == lifecycle.VerbHold && d.Policy == nil {
		p.tally.holds[[2]string{"", string(d.Reason)}]++
	}
	return r
}

// askAlerts requests a query: an answer from before lookSince is too old for this node. If the node
// already waits for an answer, lookSince stays.
func (p *pass) askAlerts(m *memory) {
	if m.lookSince.IsZero() || p.word == nil || !p.word.AskedAt.Before(m.lookSince) {
		m.lookSince = p.now
	}
	p.look(p.ctx)
}

// answer sends Events about people's requests. An Event about a request that this write removes is
// always sent, because a person may make the same request again.
func (p *pass) answer(node string, d lifecycle.Decision, wrote bool) {
	if m := p.remember(node); m.reset != "" && wrote && slices.Contains(d.Consume, remediations.ResetKey) {
		p.Events.Event(node, Event{Reason: "RepairCancelled", Action: "Reset", Note: m.reset})
		m.reset = ""
	}
	for _, notice := range d.Notices {
		h := fnv.New32a()
		_, _ = h.Write([]byte(notice.Message))
		e := Event{Warning: notice.Reason != lifecycle.NodeWellAgain, Reason: string(notice.Reason), Action: fmt.Sprintf("Answer-%x", h.Sum32()), Note: notice.Message}
		switch {
		case len(d.Consume) == 0:
			p.emitOnce(node, "", e)
		case wrote:
			p.Events.Event(node, e)
		}
	}
}

// drop first removes from the ledger what a person asked Drydock to forget.
func (p *pass) drop(t *subject, d lifecycle.Decision) (wrote bool) {
	if d.Forgets() {
		p.remember(t.of.node).reset = d.Message
		if !p.forget(t.Node, d) {
			return false
		}
	}
	if wrote = p.persist(t, d); wrote && d.LeftOf != "" {
		p.Events.Event(t.of.node, Event{Reason: "RepairUndone", Action: d.LeftOf, Note: d.Message, Of: Trail{Repair: d.LeftOf}})
	}
	return wrote
}
