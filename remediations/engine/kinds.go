package engine

import (
	"context"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// kind defines for the way through a pass (way.go) how to observe, decide and act on one kind of
// target. A field that may be nil says so.
type kind struct {
	of remediations.Kind
	// carrier returns a function that finds the node for an alert about the named target. An empty
	// node: there is none, or it is unknown now. carrier is called once for each poll. Nil: the
	// alert names the node.
	carrier func(e *Engine, ctx context.Context) func(fingerprint, name string) (node string)
	// decide calls the core with the target's last observation: Decide of targets/node,
	// targets/sidecar or targets/location.
	decide func(e *Engine, t *subject, now time.Time) lifecycle.Decision
	// ask starts what this kind alone asks beside the loop. It may make the next pass earlier. It
	// may be nil.
	ask func(p *pass, t *subject, d *lifecycle.Decision)
	// look returns the function that observes the target beside the loop; nil: observing is
	// impossible. saw handles the observation in the loop. It may be nil. A kind without look makes
	// no decision that asks for an observation.
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
	// record. Each may be nil. counted runs once all of a decision is applied; now is the repair then
	// on record.
	quiet    func(t *subject) bool
	verified func(p *pass, d lifecycle.Decision)
	counted  func(p *pass, t *subject, now *remediations.Record, d lifecycle.Decision, wrote bool)
}

// slots counts a disruptive repair, in a pass and in the ledger.
type slots struct {
	// begin runs before the slot is taken, and reports whether it may be taken. It may be nil.
	begin func(p *pass, t *subject, d lifecycle.Decision) bool
	// occupy counts the repair in this pass, vacate no longer. next counts a repair that only waits
	// for one more reading. giveBack runs when an attempt is given back and its slot must be freed.
	occupy   func(p *pass, t *subject, d lifecycle.Decision, wouldBe bool)
	next     func(p *pass, t *subject, d lifecycle.Decision)
	vacate   func(p *pass, node string)
	giveBack func(p *pass, k *kind, t *subject, d lifecycle.Decision)
	// ending saves what the ledger must know before the Node shows the repair's end, and reports
	// whether that succeeded. It may be nil. ended changes what the ledger knows after that end, and
	// reports whether anything changed.
	ending func(p *pass, t *subject, d lifecycle.Decision) bool
	ended  func(p *pass, l *ledger.Ledger, t *subject, d lifecycle.Decision) (changed bool)
}

// kinds are the kinds of every engine, in the order of a pass's decisions about one node.
var kinds = []*kind{&nodes, &locations, &sidecars}

func kindOf(of remediations.Kind) *kind {
	for _, k := range kinds {
		if k.of == of {
			return k
		}
	}
	return nil
}

// object returns the object of the target's Events. Nil: the Node.
func (k *kind) object(t *subject) *remediations.Object {
	if k.about == nil {
		return nil
	}
	return k.about(t)
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

// release frees the slot of the kind's repair on the node. After a failure, sweep frees it.
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

// emit sends an Event about the target once for each key.
func (p *pass) emit(k *kind, t *subject, key string, e Event) {
	if e.About = k.object(t); e.About == nil {
		p.emitOnce(t.of.node, key, e)
	} else if t.m.emitted.First(key+"|"+e.Reason, 64) {
		p.Events.Event("", e)
	}
}

// afterwards returns the repair once the decision is on record.
func afterwards(r *remediations.Record, d lifecycle.Decision) *remediations.Record {
	if d.Record != nil || d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop || d.Verb == lifecycle.VerbReset {
		return d.Record
	}
	return r
}
