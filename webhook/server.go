package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Where the webhook's two parts are served.
const (
	NodesPath     = "/v1/admit/nodes"
	EvictionsPath = "/v1/admit/evictions"
)

// againAfter is how long the server waits before it asks once more for what it lacks.
const againAfter = time.Second

// Server serves admission on every replica, from when it has a certificate.
type Server struct {
	Options
	metrics *metrics
	rotator *rotation // nil: the certificate is somebody else's business

	mu      sync.Mutex
	missing error // why it does not serve yet
	serving ctrlwebhook.Server
}

var (
	_ manager.Runnable               = &Server{}
	_ manager.LeaderElectionRunnable = &Server{}
)

// Add makes the server, and the rotation of its certificate where there is one, part of the manager.
func Add(mgr manager.Manager, o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registerer, o.CertDir)
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, metrics: m, missing: errors.New("admission is not served yet: it has not been started")}
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

// NeedLeaderElection says no: the API server asks whichever replica it reaches.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends, from when it knows who Drydock is and has a certificate. It waits for both without an
// end, since repairs go on without admission.
func (s *Server) Start(ctx context.Context) error {
	self, ok := s.learnSelf(ctx)
	if !ok || !s.awaitCertificate(ctx) {
		return nil // ctx has ended
	}
	host, port, err := s.address()
	if err != nil {
		return err
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: host, Port: port, CertDir: s.CertDir,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }},
	})
	server.Register(NodesPath, &admission.Webhook{Handler: &handler{Options: s.Options, self: self, metrics: s.metrics, judge: judgeNode}})
	if s.Evictions {
		server.Register(EvictionsPath, &admission.Webhook{Handler: &handler{Options: s.Options, self: self, metrics: s.metrics, judge: judgeEviction}})
	}
	s.mu.Lock()
	s.missing, s.serving = nil, server
	s.mu.Unlock()
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("serving admission: %w", err)
	}
	return nil
}

// Ready says why admission is not served, for /readyz.
func (s *Server) Ready() error {
	s.mu.Lock()
	missing, serving := s.missing, s.serving
	s.mu.Unlock()
	if missing != nil {
		return missing
	}
	if err := serving.StartedChecker()(nil); err != nil {
		return fmt.Errorf("admission is not served: %w", err)
	}
	return nil
}

func (s *Server) lacks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = fmt.Errorf("admission is not served yet: %w", err)
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
	err := wait.PollUntilContextCancel(ctx, againAfter, true, func(context.Context) (bool, error) {
		if s.rotator != nil {
			if err := s.rotator.lacks(); err != nil {
				s.lacks(err)
				return false, nil
			}
		}
		_, err := tls.LoadX509KeyPair(filepath.Join(s.CertDir, "tls.crt"), filepath.Join(s.CertDir, "tls.key"))
		if err != nil {
			s.lacks(fmt.Errorf("reading its certificate: %w", err))
		}
		return err == nil, nil
	})
	return err == nil
}
