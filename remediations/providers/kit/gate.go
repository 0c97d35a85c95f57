package kit

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
)

// errWithdrawn is the error of a request that the gate did not let out.
var errWithdrawn = errors.New("the request was withdrawn before it left")

// Gate decides at the last moment whether a request that changes something may be sent. It makes
// "nothing was done" certain: either the request passed the gate, or not one byte of it is sent. A
// Gate serves one request. A nil Gate lets every request pass.
type Gate struct {
	issue context.Context // once this context has ended, the gate is shut
	may   func() error    // the caller's last check; may be nil

	mu        sync.Mutex
	sent      bool
	withdrawn bool
	forbidden error // the error that may returned
}

// NewGate returns a gate that stays open until the context issue ends. The gate calls may once,
// right before the request is sent. If may is nil, only the context counts.
func NewGate(issue context.Context, may func() error) *Gate { return &Gate{issue: issue, may: may} }

// Trace returns a context whose requests check the gate. The check runs when the connection is
// established, with proxy and TLS, right before the first byte of the request. If the gate is shut,
// the hook closes the connection, so that the transport cannot write the request.
func (g *Gate) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if g.letOut() != nil {
			_ = i.Conn.Close()
		}
	}})
}

func (g *Gate) letOut() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sent {
		return nil
	}
	if g.withdrawn { // the caller was already answered, and calling may now could have side effects
		return errWithdrawn
	}
	if g.may != nil && g.forbidden == nil {
		g.forbidden = g.may()
	}
	if g.forbidden != nil || g.issue.Err() != nil {
		g.withdrawn = true
		return errWithdrawn
	}
	g.sent = true
	return nil
}

// Withdraw shuts the gate and returns true. If the request was already sent, it returns false.
func (g *Gate) Withdraw() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.withdrawn = !g.sent
	return g.withdrawn
}

// Forbidden returns the error of the caller's last check if the check refused the request. It
// returns nil if the check allowed the request or did not run.
func (g *Gate) Forbidden() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.forbidden
}
