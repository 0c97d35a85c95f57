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
	// Patience is how long a connection without a complete request stays open while another connection waits for its place.
	Patience time.Duration
	// Age is how long a connection may be used at most, and so how long a client's certificate counts after its authority
	// was taken away. Zero: a minute.
	Age time.Duration
	// Bodies: requests may have a body. Otherwise one with a body is refused.
	Bodies bool
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
	changed chan struct{} // a connection was closed, or does something else now
}

// defaultAge is Limits.Age where none is set. A handshake a minute costs next to nothing.
const defaultAge = time.Minute

// New returns a server. name is what errors call it, such as "the receiver". Nothing listens yet.
func New(name string, handler http.Handler, l Limits, log logr.Logger) *Server {
	if l.Age == 0 {
		l.Age = defaultAge
	}
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
		ConnState: func(c net.Conn, state http.ConnState) {
			if own := ownConn(c); own != nil && state == http.StateIdle {
				own.enter(waiting, time.Now())
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

// track marks a connection while its request is handled, and closes it with the answer where there are many, or where it is old.
func (s *Server) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r)
		if s.Open() > s.limits.Kept || c != nil && time.Since(c.born) > s.limits.Age/2 {
			w.Header().Set("Connection", "close")
		}
		now := time.Now()
		switch {
		case c == nil:
			next.ServeHTTP(w, r)
		case r.Body == nil || r.Body == http.NoBody:
			c.enter(working, now)
			next.ServeHTTP(w, r)
			c.enter(waiting, time.Now()) // until the answer is sent
		default:
			s.withBody(next, c, w, r, now)
		}
	})
}

// withBody handles a request that has a body. net/http reads what the handler left of it before it sends the answer, and
// would wait for it: for no longer than lingers, and nobody waits for such a connection's place.
func (s *Server) withBody(next http.Handler, c *conn, w http.ResponseWriter, r *http.Request, now time.Time) {
	b := &body{ReadCloser: r.Body, conn: c, began: now}
	c.enter(working, now)
	if s.limits.Bodies {
		r = r.WithContext(r.Context())
		r.Body = b
		next.ServeHTTP(w, r)
	} else {
		http.Error(w, "this port takes requests without a body only", http.StatusRequestEntityTooLarge)
	}
	if b.whole {
		c.enter(waiting, time.Now())
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingers))
	c.enter(refused, now)
}

// debugLog takes what net/http complains about, which strangers can cause, to a level that cannot flood the log.
type debugLog struct{ logr.Logger }

func (l debugLog) Write(p []byte) (int, error) {
	l.V(1).Info("serving a connection failed", "why", strings.TrimSpace(string(p)))
	return len(p), nil
}
