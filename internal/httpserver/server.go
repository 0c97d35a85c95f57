package httpserver

import (
	"context"
	"crypto/tls"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Limits are what one server grants to all of its clients together.
type Limits struct {
	// Connections may be open at once.
	Connections int
	// Kept connections stay open for another request. Beyond them, each connection closes with its answer.
	Kept int
	// Patience is how long a connection without a complete request header stays open while another connection waits for
	// its place.
	Patience time.Duration
	// Header is the time for a request's header, Read for header and body, Write from the header's end to the answer's
	// end, Idle between two requests of one connection.
	Header, Read, Write, Idle time.Duration
	// HeaderBytes bounds a request's header.
	HeaderBytes int
}

// Server is an http.Server with Limits.
type Server struct {
	// HTTP serves on a listener of Limit.
	HTTP   *http.Server
	limits Limits
	name   string

	mu      sync.Mutex
	open    map[*conn]struct{}
	changed chan struct{} // a connection was closed, or waits for a request now
}

// New returns a server. name is what errors call it, such as "the receiver". Nothing listens yet.
func New(name string, handler http.Handler, l Limits, log logr.Logger) *Server {
	s := &Server{limits: l, name: name, open: map[*conn]struct{}{}, changed: make(chan struct{}, 1)}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	s.HTTP = &http.Server{
		Handler:           s.track(handler),
		Protocols:         protocols,
		ReadHeaderTimeout: l.Header,
		ReadTimeout:       l.Read,
		WriteTimeout:      l.Write,
		IdleTimeout:       l.Idle,
		MaxHeaderBytes:    l.HeaderBytes,
		ErrorLog:          stdlog.New(debugLog{log}, "", 0),
		ConnContext:       withConn,
		// The answer has been sent by then; when the handler returns it may not have been.
		ConnState: func(c net.Conn, state http.ConnState) {
			if own := ownConn(c); own != nil && state == http.StateIdle {
				own.setHandled(false)
			}
		},
	}
	return s
}

// Listen opens a TCP port whose connections have the limits; with certificates it speaks TLS.
func (s *Server) Listen(ctx context.Context, address string, certificates *tls.Config) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening %s's port: %w", s.name, err)
	}
	return s.Limit(l, certificates), nil
}

// Limit gives a listener's connections the limits; with certificates it speaks TLS.
func (s *Server) Limit(l net.Listener, certificates *tls.Config) net.Listener {
	limited := &listener{Listener: l, server: s, closed: make(chan struct{})}
	if certificates == nil {
		return limited
	}
	return tls.NewListener(limited, certificates)
}

// Serve serves until ctx ends, then lets requests in progress finish within grace. It returns an error only where the
// port was lost. cutOff is called where requests were still in progress after that.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration, cutOff func()) error {
	// Requests in progress outlive ctx, by grace.
	s.HTTP.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }
	served := make(chan error, 1)
	go func() { served <- s.HTTP.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving %s on %s: %w", s.name, l.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := s.HTTP.Shutdown(last); err != nil {
		cutOff()
		_ = s.HTTP.Close()
	}
	return nil
}

// Open is how many connections there are.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// track marks a connection while its request is handled, and closes it with the answer where there are many.
func (s *Server) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Open() > s.limits.Kept {
			w.Header().Set("Connection", "close")
		}
		if c, _ := r.Context().Value(connKey{}).(*conn); c != nil {
			c.setHandled(true)
		}
		next.ServeHTTP(w, r)
	})
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, ownConn(c))
}

// ownConn is the connection below TLS; nil: it is of no listener of Limit.
func ownConn(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn)
	return own
}

// listener lets no more connections in than there are places. One more is accepted, and waits until it has a place.
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
	c := &conn{Conn: accepted, server: l.server, since: time.Now()}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.open[c] = struct{}{}
	return c, nil
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn is an open connection. The server's lock guards handled and since.
type conn struct {
	net.Conn
	server *Server
	// handled: a handler has its request. Otherwise the connection waits for a request since then.
	handled bool
	since   time.Time
}

func (c *conn) Close() error {
	c.server.mu.Lock()
	delete(c.server.open, c)
	c.server.mu.Unlock()
	c.server.signal()
	return c.Conn.Close()
}

func (c *conn) setHandled(handled bool) {
	c.server.mu.Lock()
	c.handled, c.since = handled, time.Now()
	c.server.mu.Unlock()
	c.server.signal()
}

func (s *Server) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// makeRoom returns when there is a place for the connection that waits for one. Where there is none it closes the one that
// has waited longest for its request, once that has had its time: connections on which nothing is asked must keep nobody
// out. In a storm Alertmanager opens thousands of them.
func (s *Server) makeRoom(closed <-chan struct{}) bool {
	for {
		longest, left, full := s.longestWaiting()
		if !full {
			return true
		}
		if longest != nil && left <= 0 {
			_ = longest.Close()
			continue
		}
		// Without one that waits, only a signal can help.
		var over <-chan time.Time
		if longest != nil {
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

// longestWaiting is the connection that has waited longest for its request, and how long it may still wait.
func (s *Server) longestWaiting() (longest *conn, left time.Duration, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) < s.limits.Connections {
		return nil, 0, false
	}
	for c := range s.open {
		if !c.handled && (longest == nil || c.since.Before(longest.since)) {
			longest = c
		}
	}
	if longest != nil {
		left = s.limits.Patience - time.Since(longest.since)
	}
	return longest, left, true
}

// debugLog takes what net/http complains about, which strangers can cause, to a level that cannot flood the log.
type debugLog struct{ logr.Logger }

func (l debugLog) Write(p []byte) (int, error) {
	l.V(1).Info("serving a connection failed", "why", strings.TrimSpace(string(p)))
	return len(p), nil
}
