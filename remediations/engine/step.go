package engine

import (
	"context"
	"time"
)

// stepTurns bounds the passes in one Step. The next Step makes the others.
const stepTurns = 100

// Step runs the loop once at the clock's time, and returns the time until the next pass is due. A
// simulation calls Step in place of Start. work must run one of the functions that Options.Beside
// received, and returns false if there is none. If poll is true, Step first queries Alertmanager.
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
	e.workBeside(ctx, work)
	for range stepTurns {
		next = e.turn(ctx)
		if !e.workBeside(ctx, work) {
			break
		}
	}
	for len(e.long.due) > 0 {
		e.tellHold() // without a pause in between, because a simulation has no API server to spare
	}
	return next
}

func (e *Engine) workBeside(ctx context.Context, work func() bool) (brought bool) {
	for work() {
		for e.take(ctx) {
			brought = true
		}
	}
	return brought
}

func (e *Engine) take(ctx context.Context) bool {
	select {
	case l := <-e.looked:
		e.received(ctx, l)
	case c := <-e.calls:
		e.answered(c)
	case f := <-e.enqueued:
		f()
	default:
		return false
	}
	return true
}

// Idle reports whether a pass would decide nothing until a Node or an alert changes.
func (e *Engine) Idle() bool {
	if e.ledger == nil || e.looking || e.lookDue || e.underway > 0 || !e.leasesOut.since.IsZero() {
		return false
	}
	l := e.ledger
	return e.concerned == 0 && len(e.firing) == 0 && !e.waiting && len(l.Slots) == 0 && len(l.Orphans) == 0 && len(l.Status.Breakers) == 0 &&
		len(l.Status.Holds) == 0 && len(l.Status.BreakGlass) == 0
}
