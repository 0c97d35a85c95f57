package httpserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// phase is the state of an open connection. If all are in use and a new one arrives, the server may
// close any connection except one in the phase working.
type phase int

const (
	// waiting means that the header or the body is incomplete, or the server has just answered.
	waiting phase = iota
	// working means that the handler has received all data that it reads, and has not answered yet.
	working
	// refused means that the handler has answered, and the client still sends a body that is not
	// needed.
	refused
)

// lingers is how long the server reads a body that is not needed. If it closed the connection
// earlier, the client would get a connection reset instead of the answer.
const lingers = 500 * time.Millisecond

// The server's lock guards phase and since.
type conn struct {
	net.Conn
	server *Server
	born   time.Time
	phase  phase
	// since is when a waiting connection began to wait for the client.
	since time.Time
}

func (c *conn) Close() error {
	c.server.mu.Lock()
	delete(c.server.open, c)
	c.server.mu.Unlock()
	c.server.signal()
	return c.Conn.Close()
}

// SetReadDeadline limits the deadline to the connection's maximum age. net/http sets a zero time,
// which means no deadline, while a handler works.
func (c *conn) SetReadDeadline(t time.Time) error {
	if end := c.born.Add(c.server.limits.Age); t.After(end) {
		t = end
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) enter(p phase, since time.Time) {
	c.server.mu.Lock()
	c.phase, c.since = p, since
	c.server.mu.Unlock()
	c.server.signal()
}

// body puts the connection in the phase waiting while a handler reads it.
type body struct {
	io.ReadCloser
	conn  *conn
	began time.Time
	whole bool
}

func (b *body) Read(p []byte) (n int, err error) {
	b.conn.enter(waiting, b.began)
	n, err = b.ReadCloser.Read(p)
	b.conn.enter(working, b.began)
	b.whole = b.whole || err == io.EOF // readers return io.EOF unwrapped
	return n, err
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, ownConn(c))
}

// connOf returns nil if no listener of Server.Limit accepted the connection.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// ownConn looks below TLS. It returns nil if no listener of Server.Limit accepted the connection.
func ownConn(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn)
	return own
}

// listener keeps at most Limits.Connections open. One further accepted connection waits until
// another one is closed.
type listener struct {
	net.Listener
	server *Server
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.server.makeRoom(l.closed) {
		_ = accepted.Close()
		return nil, net.ErrClosed
	}
	now := time.Now()
	c := &conn{Conn: accepted, server: l.server, born: now, since: now}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.open[c] = struct{}{}
	return c, nil
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (s *Server) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// makeRoom closes a connection in the phase refused if the server is full. Without one, it closes
// the connection that has waited longest for its client, but not before Limits.Patience. It returns
// false if the listener was closed.
//
// The limit matters in a storm of alerts: Alertmanager then opens thousands of connections without
// requests.
func (s *Server) makeRoom(closed <-chan struct{}) bool {
	for {
		idlest, left, full := s.idlest()
		if !full {
			return true
		}
		if idlest != nil && left <= 0 {
			_ = idlest.Close()
			continue
		}
		// If no connection waits for its client, over stays nil, and makeRoom waits for a change.
		var over <-chan time.Time
		if idlest != nil {
			over = time.After(left)
		}
		select {
		case <-closed:
			return false
		case <-s.changed:
		case <-over:
		}
	}
}

// idlest returns the connection that must be closed next, and how long it may still stay open. full
// is false if there is room for another one.
func (s *Server) idlest() (idlest *conn, left time.Duration, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) < s.limits.Connections {
		return nil, 0, false
	}
	for c := range s.open {
		switch {
		case c.phase == refused:
			return c, 0, true
		case c.phase == waiting && (idlest == nil || c.since.Before(idlest.since)):
			idlest = c
		}
	}
	if idlest != nil {
		left = s.limits.Patience - time.Since(idlest.since)
	}
	return idlest, left, true
}
