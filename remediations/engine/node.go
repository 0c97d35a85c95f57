package engine

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/lifecycle"
)

// pass is one pass over the fleet.
type pass struct {
	*Engine
	ctx   context.Context
	now   time.Time
	fleet *fleet.Fleet
	tally *tally
	// holds are the fleet-wide holds, by reason.
	holds  map[remediations.Reason]string
	next   time.Time
	failed bool
	// ends are the ends that this pass's decisions found, for learn.
	ends []endsOn
	// tidying is the time spent on writes without urgency.
	tidying time.Duration
}

// node decides about one node and applies the decision.
func (p *pass) node(n *corev1.Node) {
	p.now = p.Clock.Now() // a pass over a storm takes a while, and an intent must be young when its call is made
	if p.stands(n) {
		return
	}
	s := p.state(n)
	d := p.core.decide(s, p.now)
	surveyed := d.Ask.Survey && p.survey(s, d)
	if d.Ask.Lease || d.Ask.Heartbeats || surveyed {
		if d.Ask.Lease {
			p.readLease(n.Name)
		}
		if d.Ask.Heartbeats {
			p.readHeartbeats()
		}
		s = p.state(n)
		d = p.core.decide(s, p.now)
	}
	if p.Decided != nil {
		p.Decided(n.Name, d)
	}
	m := p.remember(n.Name)
	if d.Ask.Replacement {
		p.askProof(m, s.Journal.Record)
	}
	if signs := witnessOf(d, n); d.Ask.Witness && len(signs) > 0 {
		p.readWitness(m, n, signs)
	}
	m.keepWorking(s, d)
	m.found(d, p.now)
	if d.Ask.Alerts {
		p.askAlerts(m)
		p.prefetchFor(s, s.Journal.Record, d)
	}
	p.complete(m, s, &d)
	p.waiting = p.waiting || d.Verb == lifecycle.VerbHold || m.work != nil
	p.recheck(d)
	before := m.written
	p.apply(s, d)
	p.noteEnds(n, d)
	p.answer(n.Name, d, m.written != nil && m.written != before)
	if m.writes.lasting(p.now) && d.Policy != nil {
		p.tally.holds[[2]string{d.Policy.Name, string(remediations.ReasonBlind)}]++
	}
	m.shown = p.samples(n, p.count(s.Journal.Record, d), d)
	p.tally.show(m.shown)
	p.follow(target{node: n.Name}, s.Journal.Record, nil, d)
	p.stand(s, d)
}

// askAlerts queries the Alertmanagers for the node.
func (p *pass) askAlerts(m *memory) {
	if m.lookSince.IsZero() || p.word == nil || !p.word.AskedAt.Before(m.lookSince) {
		m.lookSince = p.now
	}
	p.look(p.ctx)
}

// answer reports to people the result of what they wrote on the Node. A removed key is answered
// with the write that removes it, and every time, because a person may ask twice.
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

func (p *pass) apply(s *lifecycle.State, d lifecycle.Decision) {
	if d.Superseded != nil {
		p.supersede(s, d)
		return
	}
	if d.Relapsed != nil {
		p.relapsed(s, d.Relapsed)
		return
	}
	switch d.Verb {
	case lifecycle.VerbIssue:
		p.issue(s, d)
	case lifecycle.VerbHold:
		p.hold(s, d)
	case lifecycle.VerbVerify:
		if p.persist(s, d) != nil {
			p.remember(s.Node.Name).call = nil
			p.emitOnce(s.Node.Name, d.Record.Intent.ID, Event{Reason: "RepairVerifying", Action: d.Record.Intent.ID, Note: d.Message, Of: trailOf(d.Record)})
			p.stop(d)
			p.replacing(d.Record)
		}
	case lifecycle.VerbResume:
		p.work(s.Node, d, s.Journal.Record)
	case lifecycle.VerbEnd:
		p.end(s, d)
	case lifecycle.VerbReset:
		p.reset(s, d)
	case lifecycle.VerbLook:
		if d.Policy != nil {
			if wouldBe := d.Policy.Mode == remediations.ModeObserve; !wouldBe || !p.spoken(d.Policy, s.Journal.Record) {
				p.fleet.Next(p.Config, s.Node, p.provider(s, d), wouldBe)
			}
		}
		p.persist(s, d)
	case lifecycle.VerbWait:
		if p.persist(s, d) != nil && d.Record != nil && d.Record.Note != "" {
			p.emitOnce(s.Node.Name, d.Record.ID+d.Record.Note, Event{Warning: true, Of: trailOf(d.Record), Reason: "RepairBlocked", Action: d.Record.Intent.ID, Note: fmt.Sprintf("%s of repair %s: %s", d.Record.Step.Name, d.Record.ID, d.Message)})
		}
	case lifecycle.VerbDrop, lifecycle.VerbRest:
		if d.Forgets() {
			p.remember(s.Node.Name).reset = d.Message
		}
		if !d.Forgets() || p.forget(s.Node, d) {
			if p.persist(s, d) != nil && d.LeftOf != "" {
				p.Events.Event(s.Node.Name, Event{Reason: "RepairUndone", Action: d.LeftOf, Note: d.Message, Of: Trail{Repair: d.LeftOf}})
			}
		}
	}
}

func (p *pass) hold(s *lifecycle.State, d lifecycle.Decision) {
	n := s.Node
	was := s.Journal.Record
	if d.Reason == remediations.ReasonObserving && !p.spoken(d.Policy, was) {
		p.fleet.Occupy(p.Config, n, p.provider(s, d), true)
	}
	id := ""
	switch {
	case d.Record != nil:
		id = d.Record.ID
	case was != nil:
		id = was.ID
	}
	wrote := p.persist(s, d) != nil
	if wrote && d.Record != nil {
		if was == nil {
			p.emitOnce(n.Name, id, Event{Reason: "RepairPending", Of: trailOf(d.Record), Action: id, Note: fmt.Sprintf("repair %s by policy %s: %s", id, d.Record.Policy, p.causeOf(s, d.Record))})
		}
		if was != nil && was.Phase.InFlight() {
			if m := p.remember(n.Name); was.Phase == remediations.PhaseActing && p.Config.Remediation(was.Step.Name).Once {
				m.call = nil // the attempt was given back; it is reported again when it is made
				delete(m.emitted, was.Intent.ID+"|RepairStepIssued")
			}
			p.stop(d)
			p.release(n.Name, was.ID)
			if p.ledger == nil || p.ledger.SlotOf(n.Name) == nil {
				p.fleet.Park(p.Config, n, d.Record)
			}
		}
	}
	if d.Fleetwide {
		p.holdFleet(d)
		return
	}
	if d.Record == nil || wrote {
		p.emitOnce(n.Name, id+"/"+string(d.Reason), Event{Warning: HeldIsWarning(d.Reason), Reason: "RepairHeld", Action: string(d.Reason) + "-" + id, Note: string(d.Reason) + ": " + d.Message, Of: trailOf(cmp.Or(d.Record, was))})
	}
}
