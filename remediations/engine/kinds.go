package engine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/lifecycle"
)

// kind defines for the driver in this file how to observe, decide and act on one kind of target
// other than the node itself. A field that may be nil says so.
type kind struct {
	of remediations.Kind
	// carrier returns a function that finds the node for an alert about the named target. An empty
	// node: there is none, or it is unknown now. carrier is called once for each poll.
	carrier func(e *Engine, ctx context.Context) func(fingerprint, name string) (node string)
	// decide calls the core with the target's last observation.
	decide func(e *Engine, t *subject, now time.Time) lifecycle.Decision
	// look returns the function that observes the target beside the loop. Nil: observing is
	// impossible. saw handles the observation in the loop. It may be nil.
	look func(p *pass, t *subject, d lifecycle.Decision) func(ctx context.Context, began time.Time) (seen any)
	saw  func(p *pass, t *subject)
	// call makes the call of the record's intent and returns the key for its Events. resume repeats
	// a step that may be repeated. Nil: the kind has no such step.
	call   func(p *pass, t *subject, d lifecycle.Decision) (attempt string)
	resume func(p *pass, t *subject, d lifecycle.Decision)
	// slots counts the kind's repairs among the disruptive ones. Nil: these repairs disrupt
	// nothing, take no slot, and wait for none.
	slots *slots
	// sinceSeen: the target counts as healthy from the observation, not from the decision.
	sinceSeen bool
	// about returns the object of the kind's Events. Nil: the Node, with an Event for every phase.
	// ofWhat adds to such an Event, after the repair's ID, which target the repair is for. Nil: it
	// adds nothing.
	about  func(t *subject) *remediations.Object
	ofWhat func(e *remediations.Entry) string
	// quiet reports whether a hold needs no Event. verified runs once the call's answer is on
	// record. counted runs once all of a decision is applied. Each may be nil.
	quiet    func(t *subject) bool
	verified func(p *pass, r *remediations.Record)
	counted  func(p *pass, t *subject, now *remediations.Record, d lifecycle.Decision, wrote bool)
}

// slots counts a disruptive repair, in a pass and in the ledger.
type slots struct {
	occupy func(f *fleet.Fleet, node string, r *remediations.Record, wouldBe bool)
	vacate func(f *fleet.Fleet, node string)
}

// kinds are the kinds of every engine, in the order of a pass's decisions about one node.
var kinds = []*kind{&locations, &sidecars}

func kindOf(of remediations.Kind) *kind {
	for _, k := range kinds {
		if k.of == of {
			return k
		}
	}
	return nil
}

// subject is one target, as input to a decision.
type subject struct {
	*lifecycle.State
	remediations.Subject
	of target
	m  *targetMemory
}

// beside decides about the node's targets of the kind, one after the other, and applies the
// decisions.
func (p *pass) beside(k *kind, n *corev1.Node) {
	for _, one := range p.Config.Subjects(k.of, p.journal(n)) {
		n = p.latest(n) // the previous target may have changed the Node
		t := p.subject(k, n, one)
		d := k.decide(p.Engine, t, p.now)
		if d.Ask.Heartbeats {
			p.readHeartbeats()
			t = p.subject(k, n, one)
			d = k.decide(p.Engine, t, p.now)
		}
		p.applyBeside(k, t, d)
	}
}

// subject gathers the input for the decision about a target.
func (p *pass) subject(k *kind, n *corev1.Node, one remediations.Subject) *subject {
	p.now = p.Clock.Now()
	of := target{n.Name, k.of, one.Name}
	m, known := p.rememberTarget(of)
	m.waits = m.waits || (!known && one.Record != nil)
	s := p.stateOf(n, m)
	one.Record = s.Journal.Records[one.Key]
	return &subject{State: s, Subject: one, of: of, m: m}
}

func (p *pass) applyBeside(k *kind, t *subject, d lifecycle.Decision) {
	since := p.now
	if k.sinceSeen && !t.m.seenAt.IsZero() {
		since = t.m.seenAt
	}
	t.m.found(d, since)
	if d.Ask.Alerts {
		p.askAlerts(p.remember(t.of.node))
		if k.slots != nil {
			p.prefetchFor(t.State, t.Record, d)
		}
	}
	p.waiting = p.waiting || (k.slots != nil && d.Verb == lifecycle.VerbHold)
	if d.Ask.Observation {
		p.lookAt(k, t, d)
	}
	p.recheck(d)
	var about *remediations.Object
	if k.about != nil {
		about = k.about(t)
	}
	p.follow(t.of, t.Record, about, d)
	wrote := false
	switch d.Verb {
	case lifecycle.VerbIssue:
		wrote = p.issueBeside(k, t, d)
	case lifecycle.VerbResume:
		k.resume(p, t, d)
	case lifecycle.VerbHold:
		wrote = p.keepBeside(k, t, d)
	case lifecycle.VerbVerify:
		if wrote = p.putOf(t.State, t.Key, d); wrote {
			p.verifying(k, t, d)
		}
	case lifecycle.VerbEnd:
		if wrote = p.putOf(t.State, t.Key, d); wrote {
			p.endBeside(k, t, d)
		}
	case lifecycle.VerbLook:
		if r := onRecord(t, d); k.slots != nil && d.Policy != nil && r != nil && !p.spoken(d.Policy, t.Record) {
			k.slots.occupy(p.fleet, t.of.node, r, d.Policy.Mode == remediations.ModeObserve)
		}
		wrote = p.putOf(t.State, t.Key, d)
	case lifecycle.VerbWait, lifecycle.VerbDrop, lifecycle.VerbRest, lifecycle.VerbReset:
		wrote = p.putOf(t.State, t.Key, d)
	}
	r := t.Record
	switch {
	case d.Record != nil && wrote:
		r = d.Record
	case wrote && (d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop):
		r = nil
	}
	p.tallied(r, d)
	if k.counted != nil {
		k.counted(p, t, r, d, wrote)
	}
}

// onRecord returns the repair after the decision.
func onRecord(t *subject, d lifecycle.Decision) *remediations.Record {
	if d.Record != nil {
		return d.Record
	}
	return t.Record
}

// lookAt observes the target beside the loop.
func (p *pass) lookAt(k *kind, t *subject, d lifecycle.Decision) {
	look := k.look(p, t, d)
	if look == nil {
		return
	}
	p.observe(t.of, t.m, func(ctx context.Context, began time.Time) func() {
		seen := look(ctx, began)
		took := p.Clock.Since(began)
		return func() {
			t.m.seen, t.m.seenAt, t.m.took = seen, began, took
			if k.saw != nil {
				k.saw(p, t)
			}
		}
	})
}

// issueBeside takes the slot if the kind has slots, writes the intent, and starts the call. Each
// begins only after the one before is durable.
func (p *pass) issueBeside(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	r, before := d.Record, p.ledger
	if k.slots != nil {
		l := before.Clone()
		if d.PutBack == nil { // putting back may be repeated
			p.attempts.reserving(l, t.Node, r, p.now)
		}
		l.Reserve(p.Config, t.Node, r, p.now)
		if p.save(l) != nil {
			return false
		}
		k.slots.occupy(p.fleet, t.of.node, r, false)
		if p.Clock.Now().Sub(p.now) > p.core.intentGood {
			return false // the slot stays until sweep has seen that no repair came of it
		}
	}
	if !p.putOf(t.State, t.Key, d) {
		if k.slots != nil && p.unreserve(before, t.of.node) {
			k.slots.vacate(p.fleet, t.of.node)
		}
		return false
	}
	if k.about == nil && (t.Record == nil || t.Record.Intent == nil) {
		p.emitOnceOf(k, t, r.ID, Event{Reason: "RepairStarted", Of: trailOf(r), Action: r.ID, Note: fmt.Sprintf("repair %s by policy %s: %s", r.ID, d.Policy.Name, p.causeOf(t.State, r))})
	}
	attempt := k.call(p, t, d)
	p.emitOnceOf(k, t, attempt, Event{Warning: p.Config.Remediation(r.Step.Name).Disruptive, Reason: "RepairStepIssued", Action: attempt, Note: d.Message, Of: trailOf(r)})
	return true
}

// verifying runs once the call's answer is on record.
func (p *pass) verifying(k *kind, t *subject, d lifecycle.Decision) {
	t.m.call, t.m.seen, t.m.seenAt = nil, nil, time.Time{} // observations from before the call prove nothing
	if k.about == nil {
		p.emitOnceOf(k, t, d.Record.Intent.ID, Event{Reason: "RepairVerifying", Action: d.Record.Intent.ID, Note: d.Message, Of: trailOf(d.Record)})
	}
	if k.verified != nil {
		k.verified(p, d.Record)
	}
}

func (p *pass) keepBeside(k *kind, t *subject, d lifecycle.Decision) (wrote bool) {
	node, was, r := t.of.node, t.Record, onRecord(t, d)
	if k.slots != nil && d.Reason == remediations.ReasonObserving && r != nil && !p.spoken(d.Policy, was) {
		k.slots.occupy(p.fleet, node, r, true)
	}
	wrote = p.putOf(t.State, t.Key, d)
	if wrote && d.Record != nil {
		if was == nil {
			p.emitOnceOf(k, t, r.ID, Event{Reason: "RepairPending", Of: trailOf(r), Action: r.ID, Note: fmt.Sprintf("repair %s by policy %s: %s", r.ID, r.Policy, p.causeOf(t.State, r))})
		}
		if was != nil && was.Phase.InFlight() && !r.Phase.InFlight() {
			p.releaseOf(k, node, was.ID)
		}
	}
	switch {
	case d.Fleetwide:
		p.holdFleet(d)
		return wrote
	case k.quiet != nil && k.quiet(t), d.Record != nil && !wrote:
		return wrote
	}
	id := t.Name
	if r != nil {
		id = r.ID
	}
	action := string(d.Reason)
	if k.about == nil {
		action += "-" + id // a Node has repairs of more targets than this one
	}
	p.emitOnceOf(k, t, id+"/"+string(d.Reason), Event{Warning: HeldIsWarning(d.Reason), Reason: "RepairHeld", Action: action, Note: string(d.Reason) + ": " + d.Message, Of: trailOf(r)})
	return wrote
}

func (p *pass) endBeside(k *kind, t *subject, d lifecycle.Decision) {
	e, whose := d.Ended, ""
	p.metrics.Over(e)
	if k.ofWhat != nil {
		whose = k.ofWhat(e)
	}
	p.emitOnceOf(k, t, e.ID, Event{
		Warning: e.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(e.Outcome), Action: e.ID, Of: TrailOfEntry(e),
		Note: endNote(e, whose, d.Message),
	})
	p.again = true                                                   // another repair may wait for its turn
	if k.slots == nil || e.Outcome == remediations.OutcomeObserved { // the ledger does not know of observed repairs
		return
	}
	k.slots.vacate(p.fleet, t.of.node)
	if p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	freed := l.Release(e.ID)
	l.Finished(e.Policy, e.ID, e.Outcome)
	if freed || l.Failing(e.Policy) != p.ledger.Failing(e.Policy) || e.Outcome == remediations.OutcomeExhausted {
		_ = p.save(l) // a failure is logged, and the ledger is read again
	}
}

// releaseOf frees the slot of the kind's repair on the node. After a failure, sweep frees it.
func (p *pass) releaseOf(k *kind, node, repair string) {
	if k.slots == nil {
		return
	}
	k.slots.vacate(p.fleet, node)
	if p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	if l.Release(repair) {
		_ = p.save(l)
	}
	p.again = true // another repair may wait for its turn
}

// emitOnceOf sends an Event about the target once for each key.
func (p *pass) emitOnceOf(k *kind, t *subject, key string, e Event) {
	if k.about == nil {
		p.emitOnce(t.of.node, key, e)
		return
	}
	if t.m.emitted.First(key+"|"+e.Reason, 64) {
		e.About = k.about(t)
		p.Events.Event("", e)
	}
}
