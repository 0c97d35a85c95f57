package engine

import (
	"context"
	"time"
)

const (
	// restPerNode is how long notices are debounced after a pass, for each node that the pass
	// decided about. It is about five times the cost of one node, so that passes use at most a
	// fifth of one core. A wait below leastRest is skipped, and a person's request waits no longer
	// than longestRest.
	restPerNode = 20 * time.Microsecond
	leastRest   = time.Millisecond
	longestRest = 200 * time.Millisecond
)

// debounce collects further notices before the pass that one of them requested. In a storm each
// written alert is a notice. Passes over thousands of unhealthy nodes, one right after the other,
// would take the CPU from the writes.
func (e *Engine) debounce(ctx context.Context, passed time.Time) {
	wait := min(time.Duration(e.concerned)*restPerNode, longestRest) - e.Clock.Now().Sub(passed)
	if wait < leastRest {
		return
	}
	e.rest(ctx, wait)
	select {
	case <-e.notice:
	default:
	}
}
