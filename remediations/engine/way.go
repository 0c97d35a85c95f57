package engine

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// This file shows how a pass handles every target, from top to bottom:
//
//	gather  collect what is known about the target               gather
//	decide  the core decides, without side effects               kind.decide
//	write   the decision becomes durable on the Node             persist
//	act     only after that write, the call starts               issue, kind.call, send
//	verify  the answer is recorded, and Drydock waits for proof  verify
//
// A pass makes one decision about a target. A repair takes several passes, and the record on the
// Node shows how far the repair has come. One pass writes the intent and starts the call. A later
// pass records the call's answer, and the passes after that wait for the proof.
//
// Before a call, the core decides about three times. Its first decision requests data. It decides
// to make the call only when Alertmanager, the provider and the leases have answered.
//
// The files node.go, locations.go and sidecars.go define how the kinds of targets differ. kinds.go
// defines what each kind must provide.

type subject struct {
	*lifecycle.State
	remediations.Subject
	of target
	m  *targetMemory
}

// visit decides about the node first, then about its other targets one after the other, because a
// decision uses what the previous one has written.
func (p *pass) visit(n *corev1.Node) {
	p.now = p.Clock.Now() // not the pass's beginning: in a storm a pass takes a while, and an intent must be young when its call is made
	for _, k := range kinds {
		if n = p.latest(n); k.of == remediations.KindNode && p.stands(n) {
			continue
		}
		for _, one := range p.Config.Subjects(k.of, p.journal(n)) {
			p.drive(k, n, one)
		}
	}
}

func (p *pass) drive(k *kind, n *corev1.Node, one remediations.Subject) {
	t := p.gather(k, n, one)
	d := k.decide(p.Engine, t, p.now)
	if p.read(t, d) {
		t = p.gather(k, n, one)
		d = k.decide(p.Engine, t, p.now)
	}
	p.ask(k, t, &d)
	wrote, r := p.apply(k, t, d), t.Record
	if wrote {
		r = afterwards(r, d)
	}
	k.counted(p, t, r, d, wrote)
}

func (p *pass) gather(k *kind, n *corev1.Node, one remediations.Subject) *subject {
	n = p.latest(n) // the previous target may have changed the Node
	of := target{n.Name, k.of, one.Name}
	m, known := p.rememberTarget(of)
	m.waits = m.waits || (!known && one.Record != nil)
	s := p.stateOf(n, of, m)
	one.Record = s.Journal.On(one.Key)
	return &subject{State: s, Subject: one, of: of, m: m}
}

// read makes the reads that are quick enough for the loop. It reports whether the core must decide
// again.
func (p *pass) read(t *subject, d lifecycle.Decision) (again bool) {
	surveyed := d.Ask.Survey && p.survey(t.State, d)
	if d.Ask.Lease {
		p.readLease(t.of.node)
	}
	if d.Ask.Heartbeats {
		p.readHeartbeats()
	}
	return d.Ask.Lease || d.Ask.Heartbeats || surveyed
}

// ask starts the slower reads in other goroutines. Each answer causes another pass.
func (p *pass) ask(k *kind, t *subject, d *lifecycle.Decision) {
	if k.ask != nil {
		k.ask(p, t, d)
	}
	since := p.now
	if k.sinceSeen && !t.m.seenAt.IsZero() {
		since = t.m.seenAt
	}
	t.m.found(*d, since)
	if d.Ask.Alerts {
		p.askAlerts(p.remember(t.of.node))
		if k.slots != nil {
			p.prefetchFor(t.State, t.Record, *d)
		}
	}
	p.waiting = p.waiting || (k.slots != nil && d.Verb == lifecycle.VerbHold)
	if d.Ask.Observation {
		p.lookAt(k, t, *d)
	}
	p.recheck(*d)
	p.follow(t.of, t.Record, k.object(t), *d)
}

// apply reports whether the decision's write is durable.
func (p *pass) apply(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	switch {
	case d.Superseded != nil:
		return p.supersede(k, t, d)
	case d.Relapsed != nil:
		p.relapsed(t.State, d.Relapsed)
		return false
	}
	switch d.Verb {
	case lifecycle.VerbLook:
		if k.slots != nil && d.Policy != nil && (d.Policy.Mode != remediations.ModeObserve || !p.spoken(d.Policy, t.Record)) {
			k.slots.next(p, t, d)
		}
		return p.persist(t, d)
	case lifecycle.VerbHold:
		return p.hold(k, t, d)
	case lifecycle.VerbIssue:
		return p.issue(k, t, d)
	case lifecycle.VerbResume:
		k.resume(p, t, d)
	case lifecycle.VerbVerify:
		return p.verify(k, t, d)
	case lifecycle.VerbEnd:
		return p.end(k, t, d)
	case lifecycle.VerbWait:
		return p.persist(t, d)
	case lifecycle.VerbDrop, lifecycle.VerbRest:
		return p.drop(t, d)
	case lifecycle.VerbReset:
		return p.reset(t, d)
	}
	return false
}

// issue takes a slot in the ledger, then writes the intent on the Node, then starts the call. Each
// begins only after the previous write is durable: a crash may leave a slot or an intent behind,
// but never a call without a record.
func (p *pass) issue(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	r, before := d.Record, p.ledger
	if k.slots != nil && !p.takeSlot(k, t, d) {
		return false
	}
	if !p.persist(t, d) {
		if k.slots != nil && p.unreserve(before, t.of.node) {
			k.slots.vacate(p, t.of.node)
		}
		return false
	}
	attempt := k.call(p, t, d)
	if k.onNode() && (t.Record == nil || t.Record.Intent == nil) {
		p.emit(k, t, r.ID, Event{Reason: "RepairStarted", Of: trailOf(r), Action: r.ID, Note: fmt.Sprintf("repair %s by policy %s: %s", r.ID, d.Policy.Name, p.causeOf(t.State, r))})
	}
	p.emit(k, t, attempt, Event{Warning: p.Config.Remediation(r.Step.Name).Disruptive, Reason: "RepairStepIssued", Action: attempt, Note: d.Message, Of: trailOf(r)})
	if r.Evidence != "" && (t.Record == nil || t.Record.Evidence != r.Evidence) {
		p.emit(k, t, attempt, Event{Reason: "RepairEvidence", Action: attempt, Note: "the host reported before the step: " + r.Evidence, Of: trailOf(r)})
	}
	return true
}

// takeSlot returns true if the slot was saved and the decision is still young enough for its call.
func (p *pass) takeSlot(k *kind, t *subject, d lifecycle.Decision) bool {
	if k.slots.mayTake != nil && !k.slots.mayTake(p, t, d) {
		return false
	}
	l := p.ledger.Clone()
	if d.PutBack == nil { // a put-back may be repeated, so no attempt is noted for it
		p.attempts.reserving(l, t.Node, d.Record, p.now)
	}
	l.Reserve(p.Config, t.Node, d.Record, p.now)
	if p.save(l) != nil {
		return false
	}
	k.slots.occupy(p, t, d)
	return p.Clock.Now().Sub(p.now) <= p.core.intentGood // if not, the intent would be too old to act on, and is not written
}

func (p *pass) verify(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	if !p.persist(t, d) {
		return false
	}
	t.m.call, t.m.seen, t.m.seenAt = nil, nil, time.Time{} // observations from before the call prove nothing
	if k.onNode() {
		p.emit(k, t, d.Record.Intent.ID, Event{Reason: "RepairVerifying", Action: d.Record.Intent.ID, Note: d.Message, Of: trailOf(d.Record)})
	}
	if k.verified != nil {
		k.verified(p, d)
	}
	return true
}

func (p *pass) hold(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	was, r := t.Record, cmp.Or(d.Record, t.Record)
	if k.slots != nil && d.Reason == remediations.ReasonObserving && !p.spoken(d.Policy, was) {
		k.slots.occupy(p, t, d)
	}
	wrote = p.persist(t, d)
	switch {
	case !wrote || d.Record == nil:
	case was == nil:
		p.emit(k, t, r.ID, Event{Reason: "RepairPending", Of: trailOf(r), Action: r.ID, Note: fmt.Sprintf("repair %s by policy %s: %s", r.ID, r.Policy, p.causeOf(t.State, r))})
	case was.Phase.InFlight() && !r.Phase.InFlight() && k.slots != nil:
		k.slots.giveBack(p, k, t, d)
	}
	switch {
	case d.Fleetwide:
		p.holdFleet(d)
	case k.quiet != nil && k.quiet(t), d.Record != nil && !wrote:
	default:
		p.emitHold(k, t, r, d)
	}
	return wrote
}
