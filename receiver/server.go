package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"github.com/go-logr/logr"

	"drydock.dev/drydock/internal/httpserver"
)

// Server is the receiver, a manager.Runnable of controller-runtime.
type Server struct {
	options  Options
	timeouts timeouts
	log      logr.Logger
	token    *token                   // nil: no token is required
	certs    *httpserver.Certificates // nil: plain HTTP
	metrics  serverMetrics
	engine   *gin.Engine
	posts    chan struct{} // one element for each post in progress

	bodies *httpserver.Bodies

	started   atomic.Bool
	http      *httpserver.Server // set by Start
	addr      atomic.Pointer[net.Addr]
	listening chan struct{}
}

// New returns a Server that does not listen yet. It returns an error if a file is missing or empty,
// or only one file of a TLS pair is set. It also refuses to accept posts from any client on an
// address beyond loopback.
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
		if s.token, err = newToken(o.TokenFile, o.MadeToken); err != nil {
			return nil, err
		}
	}
	if o.TLS.CertFile != "" {
		if s.certs, err = httpserver.NewCertificates("the receiver", httpserver.TLSFiles(o.TLS)); err != nil {
			return nil, err
		}
	}
	if s.metrics, err = newServerMetrics(o.Registerer); err != nil {
		return nil, err
	}
	s.bodies = httpserver.NewBodies(o.MaxBodyBytes, max(1, int(bodyMemory/o.MaxBodyBytes)), decodedMemory, s.timeouts.place)
	s.engine = s.routes()
	return s, nil
}

// NeedLeaderElection returns false: every replica receives posts. Each alert has its own annotation
// key, so the replicas' writes never conflict.
func (s *Server) NeedLeaderElection() bool { return false }

// Addr returns the address that the server listens on, or nil before that.
func (s *Server) Addr() net.Addr {
	if a := s.addr.Load(); a != nil {
		return *a
	}
	return nil
}

// Listening returns a channel that is closed once Addr is known and the server accepts connections.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Ready returns nil while the server listens and knows the token that posts must have. Otherwise
// the error says what is missing. It opens no connection.
func (s *Server) Ready() error {
	if s.addr.Load() == nil {
		return errors.New("the receiver is not listening")
	}
	if s.token != nil {
		return s.token.missing(s.log)
	}
	return nil
}

// Start listens and serves until ctx ends. Posts in progress may then finish for at most 5 s. It
// returns an error if it cannot open the port, or loses it later.
func (s *Server) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("the receiver was started twice")
	}
	if s.log.GetSink() == nil {
		s.log = logr.FromContextOrDiscard(ctx)
	}
	s.http = httpserver.New("the receiver", s.engine, s.timeouts.limits(), s.log)
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	addr := listener.Addr()
	s.addr.Store(&addr)
	close(s.listening)
	defer s.addr.Store(nil)
	s.log.Info("receiving alerts", "address", addr.String(), "tls", s.certs != nil, "token", s.token != nil)
	return s.http.Serve(ctx, listener, s.timeouts.shutdown, func() {
		s.log.Info("posts in progress were cut off; Alertmanager will post them again", "grace", s.timeouts.shutdown.String())
	})
}

// The address of a name like localhost is known only now. If it is not loopback and posts need
// neither a token nor a certificate, the port is closed again.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	var certificates *tls.Config
	if s.certs != nil {
		certificates = s.certs.ServerConfig(s.log)
	}
	listener, err := s.http.Listen(ctx, s.options.Listen, certificates)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(listener.Addr().String())
	if !s.options.guarded() && !isLoopback(host) {
		_ = listener.Close()
		return nil, s.options.unguarded()
	}
	return listener, nil
}
