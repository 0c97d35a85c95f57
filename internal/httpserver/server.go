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

// Limits are the limits of a server, for all clients together.
type Limits struct {
	// Connections is the largest number of open connections.
	Connections int
	// Kept is how many connections stay open for another request. Further ones are closed after an
	// answer.
	Kept int
	// Patience is how long a connection without a complete request may keep a new one waiting.
	Patience time.Duration
	// Age is how long a connection may be used. The server checks client certificates only at the
	// start of a connection. So it accepts a certificate for up to Age after its authority was
	// removed. The default is one minute.
	Age time.Duration
	// Bodies allows requests with a body. Otherwise they are refused.
	Bodies bool
	// Header and Read limit the time for a request's header, and for header and body. Write limits the
	// time from the end of the header to the end of the answer. Idle limits the time between two
	// requests.
	Header, Read, Write, Idle time.Duration
	// HeaderBytes is the largest header of a request, in bytes.
	HeaderBytes int
}

// Server is an http.Server with Limits.
type Server struct {
	// HTTP must use a listener that the method Listen or Limit returned.
	HTTP   *http.Server
	limits Limits
	name   string

	mu      sync.Mutex
	open    map[*conn]struct{}
	changed chan struct{} // a connection was closed, or its phase changed
}

// One handshake per minute costs almost nothing.
const defaultAge = time.Minute

// New returns a server that does not listen yet. name is its name in errors, for example "the
// receiver".
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

// Listen opens a TCP port, and limits its connections. If certificates is not nil, it uses TLS.
func (s *Server) Listen(ctx context.Context, address string, certificates *tls.Config) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening %s's port: %w", s.name, err)
	}
	return s.Limit(l, certificates), nil
}

// Limit returns a listener that limits the connections of l. If certificates is not nil, it uses
// TLS.
func (s *Server) Limit(l net.Listener, certificates *tls.Config) net.Listener {
	limited := &listener{Listener: l, server: s, closed: make(chan struct{})}
	if certificates == nil {
		return limited
	}
	return tls.NewListener(limited, certificates)
}

// Serve serves until ctx ends. Requests in progress may finish within grace. After that, it calls
// cutOff and closes their connections. It returns an error only if the port was lost.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration, cutOff func()) error {
	// Requests in progress continue for grace after ctx has ended.
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

// track records the phase of each request's connection. It closes the connection after the answer
// if more than Limits.Kept are open, or if it is older than half of Limits.Age.
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

// withBody limits how long net/http reads a body that the handler has not read, before the answer
// is sent. It also sets the phase refused, so that the server closes this connection first if it
// needs room.
func (s *Server) withBody(next http.Handler, c *conn, w http.ResponseWriter, r *http.Request, now time.Time) {
	b := &body{ReadCloser: r.Body, conn: c, began: now}
	c.enter(working, now)
	if s.limits.Bodies {
		r = r.WithContext(r.Context())
		r.Body = b
		next.ServeHTTP(w, r)
	} else {
		http.Error(w, "this port accepts only requests without a body", http.StatusRequestEntityTooLarge)
	}
	if b.whole {
		c.enter(waiting, time.Now())
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingers))
	c.enter(refused, now)
}

// debugLog logs net/http's errors at a debug level, because clients can cause any number of them.
type debugLog struct{ logr.Logger }

func (l debugLog) Write(p []byte) (int, error) {
	l.V(1).Info("serving a connection failed", "why", strings.TrimSpace(string(p)))
	return len(p), nil
}
