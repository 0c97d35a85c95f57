package engine

import (
	"context"
	"time"
)

const (
	// restPerNode is the wait for each node that the previous pass decided about. It is about five
	// times the cost of one node, so that passes use at most a fifth of one core. longestRest keeps
	// a person's request from being delayed noticeably.
	restPerNode = 20 * time.Microsecond
	leastRest   = time.Millisecond
	longestRest = 200 * time.Millisecond
)

// debounce waits for further notices before a pass. In a storm each alert causes a notice, and
// passes without a pause would take the CPU from the writes.
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
