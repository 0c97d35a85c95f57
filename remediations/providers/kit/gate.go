package kit

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
)

// ErrWithdrawn says that a request did not leave.
var ErrWithdrawn = errors.New("the request was withdrawn before it left")

// Gate decides at the last moment whether a request that changes something may leave. It makes
// "certainly not done" certain: either the request passed the gate, or not one byte of it leaves. A
// Gate is for one request. A nil Gate lets everything pass.
type Gate struct {
	issue context.Context // after its end nothing may leave
	may   func() error    // the caller's last check; nil: it has none

	mu        sync.Mutex
	sent      bool
	withdrawn bool
	forbidden error // the error of may
}

// NewGate returns a gate that is open until issue ends. may is called once, at the last moment. It
// may be nil.
func NewGate(issue context.Context, may func() error) *Gate { return &Gate{issue: issue, may: may} }

// Trace checks the gate once the connection for a request is established, proxy and TLS included,
// right before the request's first byte is written. If the gate is shut, Trace closes the
// connection, so that the transport can write no more to it.
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
	if g.withdrawn { // the caller has its answer, and its last check may change something
		return ErrWithdrawn
	}
	if g.may != nil && g.forbidden == nil {
		g.forbidden = g.may()
	}
	if g.forbidden != nil || g.issue.Err() != nil {
		g.withdrawn = true
		return ErrWithdrawn
	}
	g.sent = true
	return nil
}

// Withdraw shuts the gate and reports true, or reports false if the request has left already.
func (g *Gate) Withdraw() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.withdrawn = !g.sent
	return g.withdrawn
}

// Forbidden returns the error of the caller's last check if the check refused the request. Nil: the
// check allowed the request, or was not called.
func (g *Gate) Forbidden() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.forbidden
}
