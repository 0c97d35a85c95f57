package engine

import (
	"context"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// kind defines how a pass (way.go) observes, decides about and acts on one kind of target. A field
// may be nil only if its comment says so.
type kind struct {
	of remediations.Kind
	// carrier returns a function that finds the Node where an alert about the named target is
	// written. An empty node means that there is none, or that it is unknown now. carrier is called
	// once for each poll of Alertmanager. If carrier is nil, the alert itself names the node.
	carrier func(e *Engine, ctx context.Context) func(fingerprint, name string) (node string)
	// decide calls the core with the target's last observation. The core's function is Decide of
	// targets/node, targets/sidecar or targets/location.
	decide func(e *Engine, t *subject, now time.Time) lifecycle.Decision
	// ask starts, in other goroutines, the reads that only this kind needs. It may let the next
	// pass begin earlier. It may be nil.
	ask func(p *pass, t *subject, d *lifecycle.Decision)
	// look returns the function that observes the target in another goroutine, or nil if the target
	// cannot be observed. saw handles the observation in the loop, and may be nil. If look is nil,
	// the kind's decisions never ask for an observation.
	look func(p *pass, t *subject, d lifecycle.Decision) func(ctx context.Context, began time.Time) (seen any)
	saw  func(p *pass, t *subject)
	// call makes the call that the record's intent describes. It returns the key of the Event about
	// the call: an Event with the same key is sent only once. resume continues a step that may be
	// repeated, and is nil if the kind has no such step.
	call   func(p *pass, t *subject, d lifecycle.Decision) (attempt string)
	resume func(p *pass, t *subject, d lifecycle.Decision)
	// slots connects the kind's repairs with the limits on disruptive repairs. A slot is one
	// repair's place in the ledger under these limits. If slots is nil, these repairs disrupt
	// nothing and need no slot.
	slots *slots
	// sinceSeen is true if a target counts as healthy from the start of the observation that found
	// it healthy. If sinceSeen is false, the target counts as healthy from the decision.
	sinceSeen bool
	// about returns the object that the kind's Events are about. If about is nil, the Events are
	// about the Node, and each phase of a repair has an Event. ofWhat describes the target in the
	// Event about the repair's end, right after the repair's ID. ofWhat may be nil.
	about  func(t *subject) *remediations.Object
	ofWhat func(e *remediations.Entry) string
	// quiet reports whether a hold needs no Event. verified runs once the outcome of the call is in
	// the record. Both may be nil. counted runs after a decision was applied. Its parameter named
	// now is the repair's record after that decision.
	quiet    func(t *subject) bool
	verified func(p *pass, d lifecycle.Decision)
	counted  func(p *pass, t *subject, now *remediations.Record, d lifecycle.Decision, wrote bool)
}

// slots counts the repairs of a kind against the limits on disruptive repairs, both in this pass
// and in the ledger. A slot is one repair's place in the ledger.
type slots struct {
	// mayTake runs before a slot is taken, and reports whether it may be taken. It may be nil.
	mayTake func(p *pass, t *subject, d lifecycle.Decision) bool
	// occupy counts the repair in this pass, and vacate removes the repair from that count. In mode
	// observe, occupy counts the repair as if it ran. next counts a repair that no guard holds and
	// that only waits for one more reading. giveBack frees the slot if the attempt does not count
	// as used.
	occupy   func(p *pass, t *subject, d lifecycle.Decision)
	next     func(p *pass, t *subject, d lifecycle.Decision)
	vacate   func(p *pass, node string)
	giveBack func(p *pass, k *kind, t *subject, d lifecycle.Decision)
	// ending saves what the ledger must know before the Node shows the repair's end. It reports
	// whether that succeeded, and may be nil. ended changes the ledger after that end, and reports
	// whether anything changed.
	ending func(p *pass, t *subject, d lifecycle.Decision) bool
	ended  func(p *pass, l *ledger.Ledger, t *subject, d lifecycle.Decision) (changed bool)
}

// kinds are the kinds of every engine, in the order of a pass's decisions about one node's targets.
var kinds = []*kind{&nodes, &locations, &sidecars}

func kindOf(of remediations.Kind) *kind {
	for _, k := range kinds {
		if k.of == of {
			return k
		}
	}
	return nil
}

// onNode reports whether the kind's Events are about the Node.
func (k *kind) onNode() bool { return k.about == nil }

// object returns the object that the target's Events are about. It returns nil if they are about
// the Node.
func (k *kind) object(t *subject) *remediations.Object {
	if k.onNode() {
		return nil
	}
	return k.about(t)
}

// lookAt observes the target in another goroutine.
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

// release frees the slot of this repair in the ledger. If that fails, sweep frees it in a later
// pass.
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

// emit sends an Event about the target, once for each key.
func (p *pass) emit(k *kind, t *subject, key string, e Event) {
	if e.About = k.object(t); e.About == nil {
		p.emitOnce(t.of.node, key, e)
	} else if t.m.emitted.First(key+"|"+e.Reason, 64) {
		p.Events.Event("", e)
	}
}

// emitHold sends the Event about what holds the repair r. If there is no repair yet, r is nil.
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

// afterwards returns the record that the repair has after the decision was written.
func afterwards(r *remediations.Record, d lifecycle.Decision) *remediations.Record {
	if d.Record != nil || d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop || d.Verb == lifecycle.VerbReset {
		return d.Record
	}
	return r
}
