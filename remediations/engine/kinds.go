package engine

import (
	"context"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// kind defines what differs between nodes, sidecars and locations. A field may be nil only if its
// comment says so.
type kind struct {
	of remediations.Kind
	// carrier returns a function that finds the Node where an alert about the named target is
	// written. Empty means that there is none, or that it is unknown now. carrier is called once
	// for each poll. If it is nil, the alert itself names the node.
	carrier func(e *Engine, ctx context.Context) func(fingerprint, name string) (node string)
	decide  func(e *Engine, t *subject, now time.Time) lifecycle.Decision
	// ask starts, in other goroutines, the reads that only this kind needs. It may be nil.
	ask func(p *pass, t *subject, d *lifecycle.Decision)
	// look returns the function that observes the target in another goroutine, or nil if the target
	// cannot be observed. saw runs in the loop. Both may be nil.
	look func(p *pass, t *subject, d lifecycle.Decision) func(ctx context.Context, began time.Time) (seen any)
	saw  func(p *pass, t *subject)
	// call returns the key of the Event about the call: an Event with the same key is sent once.
	// resume continues a step that may be repeated, and may be nil.
	call   func(p *pass, t *subject, d lifecycle.Decision) (attempt string)
	resume func(p *pass, t *subject, d lifecycle.Decision)
	// slots is nil if these repairs disrupt nothing, so that no limit counts them.
	slots *slots
	// sinceSeen is true if a target counts as healthy from the start of its observation. Otherwise
	// it counts from the decision.
	sinceSeen bool
	// about returns the object of the kind's Events. If it is nil, that is the Node, and each phase
	// of a repair has an Event. ofWhat describes the target in the Event about the end, and may be
	// nil.
	about  func(t *subject) *remediations.Object
	ofWhat func(e *remediations.Entry) string
	// quiet reports whether a hold needs no Event. verified runs once the outcome of the call is in
	// the record. Both may be nil. In counted, now is the record after the decision.
	quiet    func(t *subject) bool
	verified func(p *pass, d lifecycle.Decision)
	counted  func(p *pass, t *subject, now *remediations.Record, d lifecycle.Decision, wrote bool)
}

// slots counts a kind's repairs against the limits on disruptive repairs.
type slots struct {
	// mayTake runs before a slot is taken. It may be nil.
	mayTake func(p *pass, t *subject, d lifecycle.Decision) bool
	// occupy counts the repair in this pass. In mode observe it counts the repair as if it ran.
	// next counts a repair that only waits for one more reading. giveBack frees the slot if the
	// attempt does not count.
	occupy   func(p *pass, t *subject, d lifecycle.Decision)
	next     func(p *pass, t *subject, d lifecycle.Decision)
	vacate   func(p *pass, node string)
	giveBack func(p *pass, k *kind, t *subject, d lifecycle.Decision)
	// ending saves what the ledger must know before the Node shows the end, and may be nil. If it
	// returns false, the end is not written.
	ending func(p *pass, t *subject, d lifecycle.Decision) bool
	ended  func(p *pass, l *ledger.Ledger, t *subject, d lifecycle.Decision) (changed bool)
}

// kinds are in the order of a pass's decisions about one node.
var kinds = []*kind{&nodes, &locations, &sidecars}

func kindOf(of remediations.Kind) *kind {
	for _, k := range kinds {
		if k.of == of {
			return k
		}
	}
	return nil
}

func (k *kind) onNode() bool { return k.about == nil }

func (k *kind) object(t *subject) *remediations.Object {
	if k.onNode() {
		return nil
	}
	return k.about(t)
}

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

// release frees the slot in the ledger. If that fails, sweep frees it in a later pass.
func (p *pass) release(k *kind, node, repair string) {
	if p.ledger != nil {
		l := p.ledger.Clone()
		if l.Release(repair) {
			_ = p.save(l)
		}
		p.again = true // another repair may wait for the slot
	}
	k.slots.vacate(p, node)
}

func (p *pass) emit(k *kind, t *subject, key string, e Event) {
	if e.About = k.object(t); e.About == nil {
		p.emitOnce(t.of.node, key, e)
	} else if t.m.emitted.First(key+"|"+e.Reason, 64) {
		p.Events.Event("", e)
	}
}

func (p *pass) emitHold(k *kind, t *subject, r *remediations.Record, d lifecycle.Decision) {
	id := t.Name
	if r != nil {
		id = r.ID
	}
	action := string(d.Reason)
	if k.onNode() {
		action += "-" + id // with the ID, because several targets on one Node may be held
	}
	p.emit(k, t, id+"/"+string(d.Reason), Event{Warning: HeldIsWarning(d.Reason), Reason: "RepairHeld", Action: action, Note: string(d.Reason) + ": " + d.Message, Of: trailOf(r)})
}

func afterwards(r *remediations.Record, d lifecycle.Decision) *remediations.Record {
	if d.Record != nil || d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop || d.Verb == lifecycle.VerbReset {
		return d.Record
	}
	return r
}
