package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
)

// Server is the receiver. It is made by New and run once by Start, as a Runnable
// of a controller-runtime manager.
type Server struct {
	options  Options
	timeouts timeouts
	log      logr.Logger
	token    *token        // nil: none is asked for
	certs    *certificates // nil: plain HTTP
	metrics  serverMetrics
	engine   *gin.Engine
	posts    chan struct{} // one element for each post under way

	crowd crowd

	started   atomic.Bool
	addr      atomic.Pointer[net.Addr]
	listening chan struct{}
}

// New makes a Server, and refuses whatever would keep it from serving or would
// let strangers in: a missing or empty file, half a TLS pair, an open port that
// nothing guards. Nothing listens yet.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		options:   o,
		timeouts:  defaultTimeouts(),
		log:       o.Logger,
		posts:     make(chan struct{}, maxPosts),
		listening: make(chan struct{}),
	}
	if o.TokenFile != "" {
		if s.token, err = newToken(o.TokenFile); err != nil {
			return nil, err
		}
	}
	if o.TLS.CertFile != "" {
		if s.certs, err = newCertificates(o.TLS); err != nil {
			return nil, err
		}
	}
	if s.metrics, err = newServerMetrics(o.Registerer); err != nil {
		return nil, err
	}
	s.engine = s.routes()
	return s, nil
}

// NeedLeaderElection says no: every replica receives, because alerts are written
// under keys of their own and never collide.
func (s *Server) NeedLeaderElection() bool { return false }

// Addr is the address that the server listens on, nil before it does.
func (s *Server) Addr() net.Addr {
	if a := s.addr.Load(); a != nil {
		return *a
	}
	return nil
}

// Listening is closed once Addr is known and connections are taken.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Ready returns nil while the server listens, else an error that says so. It
// looks at this process only.
func (s *Server) Ready() error {
	if s.addr.Load() == nil {
		return errors.New("the receiver is not listening")
	}
	return nil
}

// Start listens and serves until ctx ends, then lets posts under way finish for
// at most 5 s. Its error means that the port could not be had, or was lost.
func (s *Server) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("the receiver was started twice")
	}
	if s.log.GetSink() == nil {
		s.log = logr.FromContextOrDiscard(ctx)
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	s.crowd.patience = s.timeouts.silent
	server := &http.Server{
		Handler:           s.engine,
		ReadHeaderTimeout: s.timeouts.header,
		ReadTimeout:       s.timeouts.read,
		WriteTimeout:      s.timeouts.write,
		IdleTimeout:       s.timeouts.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.crowd.state,
		ErrorLog:          stdlog.New(debugLog{s.log}, "", 0),
		// Posts under way outlive ctx, by shutdownGrace.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	addr := listener.Addr()
	s.addr.Store(&addr)
	close(s.listening)
	defer s.addr.Store(nil)
	s.log.Info("receiving alerts", "address", addr.String(), "tls", s.certs != nil, "token", s.token != nil)

	select {
	case err := <-served:
		return fmt.Errorf("serving the receiver on %s: %w", addr, err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		s.log.Info("posts under way were cut off; Alertmanager will post them again", "grace", shutdownGrace.String())
		_ = server.Close()
	}
	return nil
}

// listen opens the port. It looks once more at who can reach it, since only now
// is it known what a name such as localhost stands for.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Listen)
	if err != nil {
		return nil, fmt.Errorf("opening the receiver's port: %w", err)
	}
	host, _, _ := net.SplitHostPort(listener.Addr().String())
	if !s.options.guarded() && !isLoopback(host) {
		_ = listener.Close()
		return nil, s.options.unguarded()
	}
	listener = netutil.LimitListener(listener, maxConnections)
	if s.certs != nil {
		listener = tls.NewListener(listener, s.certs.serverConfig(s.log))
	}
	return listener, nil
}

// debugLog takes what net/http complains about, which strangers can cause, to a
// level that cannot flood the log.
type debugLog struct{ logr.Logger }

func (l debugLog) Write(p []byte) (int, error) {
	l.V(1).Info("serving a connection failed", "cause", strings.TrimSpace(string(p)))
	return len(p), nil
}
