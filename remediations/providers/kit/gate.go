package kit

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
)

// errWithdrawn is the error of a request that a gate stopped.
var errWithdrawn = errors.New("the request was withdrawn before it left")

// Gate decides at the last moment whether a request that changes something may be sent. If the gate
// refuses, not one byte of the request is sent. So "nothing was done" is then certain. A Gate
// serves one request. A nil Gate lets every request pass.
type Gate struct {
	issue context.Context // once this context has ended, the gate is shut
	may   func() error    // the caller's last check; may be nil

	mu        sync.Mutex
	sent      bool
	withdrawn bool
	forbidden error // the error that may returned
}

// NewGate returns a gate for one request. If the context issue has ended, the gate stops the
// request. Right before the request is sent, the gate calls the function may once. If may returns
// an error, the gate stops the request. If may is nil, the gate checks only the context.
func NewGate(issue context.Context, may func() error) *Gate { return &Gate{issue: issue, may: may} }

// Trace returns a context. A request with this context calls the gate when its connection is
// established, including proxy and TLS, right before its first byte. If the gate refuses, it closes
// the connection, so that the transport cannot write the request.
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

// Withdraw stops the request if it was not sent yet. It returns false if the request was already
// sent.
func (g *Gate) Withdraw() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.withdrawn = !g.sent
	return g.withdrawn
}

// Forbidden returns the error of the function may, the caller's last check. It returns nil if may
// allowed the request, or if the gate did not call may.
func (g *Gate) Forbidden() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.forbidden
}
