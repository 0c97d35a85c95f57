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

// Limits are the limits of one server for all its clients together.
type Limits struct {
	// Connections is the most open connections.
	Connections int
	// Kept is how many connections stay open for another request. The others close with their
	// answers.
	Kept int
	// Patience is how long a connection without a complete request stays open while another
	// connection waits for its place.
	Patience time.Duration
	// Age is how long a connection may be used, and so how long a client's certificate counts after
	// its authority was removed. Zero: a minute.
	Age time.Duration
	// Bodies: requests may have a body. Otherwise, a request with a body is refused.
	Bodies bool
	// Header is the time for a request's header, Read the time for header and body. Write is the
	// time from the end of the header to the end of the answer. Idle is the time between two
	// requests on one connection.
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
	changed chan struct{} // a connection was closed, or its phase changed
}

// defaultAge is the default of Limits.Age. One handshake per minute costs almost nothing.
const defaultAge = time.Minute

// New returns a server. name is its name in errors, for example "the receiver". It does not listen
// yet.
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

// Listen opens a TCP port with limited connections. With certificates, it uses TLS.
func (s *Server) Listen(ctx context.Context, address string, certificates *tls.Config) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening %s's port: %w", s.name, err)
	}
	return s.Limit(l, certificates), nil
}

// Limit applies the limits to a listener's connections. With certificates, it uses TLS.
func (s *Server) Limit(l net.Listener, certificates *tls.Config) net.Listener {
	limited := &listener{Listener: l, server: s, closed: make(chan struct{})}
	if certificates == nil {
		return limited
	}
	return tls.NewListener(limited, certificates)
}

// Serve serves until ctx ends, then lets requests in progress finish within grace. It returns an
// error only if the port was lost. It calls cutOff if requests were still in progress after grace.
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

// Open returns the number of open connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// track marks a connection while its request is handled. It closes the connection with the answer
// if there are many, or if it is old.
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

// withBody handles a request with a body. Before the answer is sent, net/http reads what the
// handler left of the body. It would wait for that: at most for lingers, and the connection loses
// its place if another one needs it.
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

// debugLog logs net/http's errors, which strangers can cause, at a level that cannot flood the log.
type debugLog struct{ logr.Logger }

func (l debugLog) Write(p []byte) (int, error) {
	l.V(1).Info("serving a connection failed", "why", strings.TrimSpace(string(p)))
	return len(p), nil
}
