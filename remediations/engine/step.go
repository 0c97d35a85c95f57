package engine

import (
	"context"
	"time"
)

// stepTurns is how many passes one Step makes at most: what is not settled by then goes on at the next one.
const stepTurns = 100

// Step is one turn of the loop at the clock's time. A caller that simulates the clock uses it instead of Start. Step makes passes
// until all that was begun beside the loop has been answered, and says when the next pass is due. work runs one function that
// Options.Beside was given, and says whether there was one. With poll, Step looks at Alertmanager first, as Start does at each
// PollInterval.
func (e *Engine) Step(ctx context.Context, poll bool, work func() bool) (next time.Duration) {
	if e.led.IsZero() {
		e.lead()
	}
	select {
	case <-e.notice:
	default:
	}
	select {
	case <-e.news:
		e.look(ctx)
	default:
	}
	if poll {
		e.poll(ctx)
	} else {
		e.due(ctx)
	}
	e.settle(ctx, work)
	for range stepTurns {
		next = e.turn(ctx)
		if !e.settle(ctx, work) {
			break
		}
	}
	for len(e.long.due) > 0 {
		e.tellHold() // no API server is to be spared
	}
	return next
}

// settle does all the work that there is beside the loop, and says whether it brought anything that another pass must know of.
func (e *Engine) settle(ctx context.Context, work func() bool) (brought bool) {
	for work() {
		for e.take(ctx) {
			brought = true
		}
	}
	return brought
}

// take takes in one answer that has come from beside the loop; false: there is none.
func (e *Engine) take(ctx context.Context) bool {
	select {
	case l := <-e.looked:
		e.heard(ctx, l)
	case c := <-e.calls:
		e.answered(c)
	case f := <-e.enqueued:
		f()
	default:
		return false
	}
	return true
}

// Idle says that the engine has nothing on any node, waits for nobody and holds nothing: until a Node or an alert changes, a pass
// would decide nothing.
func (e *Engine) Idle() bool {
	if e.ledger == nil || e.looking || e.lookDue || e.underway > 0 || !e.leasesOut.since.IsZero() {
		return false
	}
	l := e.ledger
	return e.concerned == 0 && len(e.firing) == 0 && !e.waiting && len(l.Slots) == 0 && len(l.Orphans) == 0 && len(l.Status.Breakers) == 0 &&
		len(l.Status.Holds) == 0 && len(l.Status.Glass) == 0
}
