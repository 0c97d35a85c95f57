package engine

import (
	"context"
	"time"
)

const (
	// restPerNode is how long a pass waits after the previous pass, for each node that the previous
	// pass decided about. It is about five times the cost of one node, so that passes use at most a
	// fifth of one core. A wait below leastRest is skipped. longestRest is the longest wait, so
	// that a person's request is not delayed noticeably.
	restPerNode = 20 * time.Microsecond
	leastRest   = time.Millisecond
	longestRest = 200 * time.Millisecond
)

// debounce waits for further notices before the pass that a notice requested. In a storm, each
// alert that is written on a Node causes a notice. Without the wait, passes over thousands of
// unhealthy nodes would follow each other without a pause, and take the CPU from the writes.
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
