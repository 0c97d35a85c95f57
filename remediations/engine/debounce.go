package engine

import (
	"context"
	"time"
)

const (
	// restPerNode is how long after a pass notices are debounced, for each node that it had to decide about: some five times what
	// that takes, so that passes take a fifth of one core at most. What is less than leastRest is not worth a wait, and a
	// person's word waits no longer than longestRest.
	restPerNode = 20 * time.Microsecond
	leastRest   = time.Millisecond
	longestRest = 200 * time.Millisecond
)

// debounce lets further notices come before the pass that one of them asked for. In a storm each alert that is written is
// one, and passes over thousands of ill nodes, each at once after the other, would take the processor from those who write.
func (e *Engine) debounce(ctx context.Context, passed time.Time) {
	wait := min(time.Duration(e.concerned)*restPerNode, longestRest) - e.Clock.Now().Sub(passed)
	if wait < leastRest {
		return
	}
	select {
	case <-ctx.Done():
	case <-e.Clock.After(wait):
	}
	select {
	case <-e.notice:
	default:
	}
}
