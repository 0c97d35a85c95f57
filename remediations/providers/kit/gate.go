package kit

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
)

var errWithdrawn = errors.New("the request was withdrawn before it left")

// Gate decides at the last moment whether a request that changes something may be sent. If it
// refuses, not one byte is sent, so nothing was done. A Gate serves one request; a nil Gate lets
// every request pass.
type Gate struct {
	issue context.Context // once this context has ended, the gate is shut
	may   func() error    // the caller's last check; may be nil

	mu        sync.Mutex
	sent      bool
	withdrawn bool
	forbidden error // the error that may returned
}

// NewGate returns a gate for one request. It refuses if the context issue has ended, or if may
// returns an error. may is called once, right before the request is sent, and may be nil.
func NewGate(issue context.Context, may func() error) *Gate { return &Gate{issue: issue, may: may} }

// Trace returns a context whose request calls the gate when its connection is established,
// including proxy and TLS, right before its first byte. If the gate refuses, it closes the
// connection, so that the transport cannot write the request.
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

// Forbidden returns the error of may, if the gate has called it.
func (g *Gate) Forbidden() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.forbidden
}
