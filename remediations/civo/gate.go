package civo

import (
	"context"
	"errors"
	"sync"
)

var errWithdrawn = errors.New("the request was withdrawn before it left")

// gate decides, once, whether a write left for Civo. It is what makes "certainly
// not done" certain: either the request was let out first, or it never leaves.
type gate struct {
	issue context.Context // over: nothing may leave any more
	may   func() error    // the caller's last word; nil: it has none

	mu        sync.Mutex
	sent      bool
	withdrawn bool
	forbidden error // what may said
}

// letOut is asked right before the first byte leaves. A gate that is nil lets
// everything out.
func (g *gate) letOut() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sent {
		return nil
	}
	if g.may != nil && g.forbidden == nil {
		g.forbidden = g.may()
	}
	if g.withdrawn || g.forbidden != nil || g.issue.Err() != nil {
		g.withdrawn = true
		return errWithdrawn
	}
	g.sent = true
	return nil
}

// withdraw shuts the gate and reports true, or reports false if the request has
// left already.
func (g *gate) withdraw() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.withdrawn = !g.sent
	return g.withdrawn
}
