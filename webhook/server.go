package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/internal/httpserver"
)

// These are the paths for changes of Nodes and for evictions.
const (
	nodesPath     = "/v1/admit/nodes"
	evictionsPath = "/v1/admit/evictions"
)

// The pause before the server tries again to learn its user name or to read its certificate.
const againAfter = time.Second

// Server serves admission on every replica, as soon as the replica has a certificate.
type Server struct {
	Options
	metrics *metrics
	rotator *rotation // nil: another program provides the certificate

	mu      sync.Mutex
	missing error // why the server does not serve yet
}

var (
	_ manager.Runnable               = &Server{}
	_ manager.LeaderElectionRunnable = &Server{}
)

// Add adds the server, and the rotation of its certificate if configured, to the manager.
func Add(mgr manager.Manager, o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registerer, o.CertDir)
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, metrics: m, missing: errors.New("admission is not served yet: the webhook has not been started")}
	if o.Rotation != nil {
		s.rotator = newRotation(mgr, o)
		if err := mgr.Add(s.rotator); err != nil {
			return nil, fmt.Errorf("adding the rotation of the webhook's certificate: %w", err)
		}
	}
	if err := mgr.Add(s); err != nil {
		return nil, fmt.Errorf("adding the webhook: %w", err)
	}
	return s, nil
}

// NeedLeaderElection returns false: the API server calls any replica.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends. First it learns Drydock's own user name and waits for a certificate,
// without a time limit, because repairs continue without admission.
func (s *Server) Start(ctx context.Context) error {
	self, ok := s.learnSelf(ctx)
	if !ok || !s.awaitCertificate(ctx) {
		return nil // ctx has ended
	}
	certificates, err := s.certificates()
	if err != nil {
		return err // the files were valid a moment ago
	}
	mux := http.NewServeMux()
	mux.Handle(nodesPath, reviews(newHandler(s.Options, self, s.metrics, judgeNode)))
	if s.Evictions {
		mux.Handle(evictionsPath, reviews(newHandler(s.Options, self, s.metrics, judgeEviction)))
	}
	server := httpserver.New("the webhook", mux, limits(), s.Log)
	listener, err := server.Listen(ctx, s.Listen, certificates.ServerConfig(s.Log))
	if err != nil {
		return err
	}
	s.setMissing(nil)
	defer s.lacks(errors.New("the webhook has stopped"))
	s.Log.Info("serving admission", "address", listener.Addr().String(), "clientCertificates", s.ClientCAFile != "")
	return server.Serve(ctx, listener, shutdownGrace, func() {})
}

// The ClientCAFile has the authority for the API servers' client certificates.
func (s *Server) files() httpserver.TLSFiles {
	return httpserver.TLSFiles{
		CertFile: filepath.Join(s.CertDir, "tls.crt"), KeyFile: filepath.Join(s.CertDir, "tls.key"), ClientCAFile: s.ClientCAFile,
	}
}

// Until the files exist, the certificate that the rotation has adopted is used.
func (s *Server) certificates() (*httpserver.Certificates, error) {
	if s.rotator == nil {
		return httpserver.NewCertificates("the webhook", s.files())
	}
	return httpserver.NewCertificatesUntil("the webhook", s.files(), s.rotator.adopted)
}

// Ready returns why admission is not served, for /readyz, or nil. It opens no connection: otherwise
// a flood of connections to the webhook's port would remove the replica from the receiver's
// Service.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missing
}

func (s *Server) setMissing(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = err
}

func (s *Server) lacks(err error) {
	s.setMissing(fmt.Errorf("admission is not served yet: %w", err))
}

func (s *Server) learnSelf(ctx context.Context) (self string, ok bool) {
	err := wait.PollUntilContextCancel(ctx, againAfter, true, func(ctx context.Context) (bool, error) {
		var err error
		if self, err = Self(ctx, s.Client); err != nil {
			s.lacks(err)
		}
		return err == nil, nil
	})
	return self, err == nil
}

func (s *Server) awaitCertificate(ctx context.Context) bool {
	err := wait.PollUntilContextCancel(ctx, againAfter, true, func(ctx context.Context) (bool, error) {
		if s.rotator != nil && s.rotator.lacks() != nil {
			if err := s.rotator.adopt(ctx); err != nil {
				s.lacks(cmp.Or(s.rotator.lacks(), err))
				return false, nil
			}
		}
		_, err := s.certificates()
		if err != nil {
			s.lacks(err)
		}
		return err == nil, nil
	})
	return err == nil
}
