package kit

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
)

// ErrWithdrawn says that a request did not leave.
var ErrWithdrawn = errors.New("the request was withdrawn before it left")

// Gate decides at the last moment whether a request that changes something may leave. It is what makes "certainly not done" certain:
// either the request was let out, or not one byte of it leaves. A Gate is for one request. A Gate that is nil lets everything out.
type Gate struct {
	issue context.Context // over: nothing may leave any more
	may   func() error    // the caller's last word; nil: it has none

	mu        sync.Mutex
	sent      bool
	withdrawn bool
	forbidden error // what may said
}

// NewGate returns a gate that is open until issue ends. may is asked once, at the last moment. It may be nil.
func NewGate(issue context.Context, may func() error) *Gate { return &Gate{issue: issue, may: may} }

// Trace asks the gate once the connection for a request stands, proxy and TLS included, right before its first byte is
// written. Where the gate is shut the connection is closed, so that the transport can write no more to it.
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
	if g.may != nil && g.forbidden == nil {
		g.forbidden = g.may()
	}
	if g.withdrawn || g.forbidden != nil || g.issue.Err() != nil {
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

// Forbidden is what the caller's last word was against the request. Nil: nothing, or it was not asked.
func (g *Gate) Forbidden() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.forbidden
}
