package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/internal/scrapers"
)

const (
	// scrapesAtOnce limits memory: with 5,000 nodes, an answer takes some megabytes.
	scrapesAtOnce = 4
	probesAtOnce  = 8
	// scrapePatience is how long a scrape may wait for earlier scrapes. It is shorter than Prometheus'
	// default scrape timeout.
	scrapePatience = 5 * time.Second
	answersWithin  = 2 * time.Second
)

// servers returns the servers of /metrics and of the health endpoints, with open ports. Neither
// needs an API server.
func (p *program) servers(ctx context.Context) (servers []manager.Runnable, err error) {
	for _, open := range []func(context.Context) (manager.Runnable, error){p.metricsServer, p.healthServer} {
		s, err := open(ctx)
		if err != nil {
			return nil, err
		}
		if s != nil {
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// metricsServer returns nil if it is not configured. Every replica runs it from the start.
func (p *program) metricsServer(ctx context.Context) (manager.Runnable, error) {
	m := p.cfg.Metrics
	var certificates *tls.Config
	if m.TLS.CertFile != "" {
		c, err := httpserver.NewCertificates("the metrics server", httpserver.TLSFiles(m.TLS))
		if err != nil {
			return nil, err
		}
		certificates = c.ServerConfig(p.log)
	}
	scrape := httpserver.Requests(promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}), scrapesAtOnce, scrapePatience)
	if m.Authenticate { // outermost, so that refused scrapes do not count for scrapesAtOnce
		scrape = scrapers.Only(scrape, scrapers.Options{
			Tokens: p.clients.AuthenticationV1().TokenReviews(), Rights: p.clients.AuthorizationV1().SubjectAccessReviews(),
			Clock: clock.RealClock{}, Log: p.log.WithName("metrics"),
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", scrape)
	return p.httpServer(ctx, "the metrics server", m.Listen, certificates, mux, httpserver.Limits{
		Connections: 256, Kept: 16, Patience: 200 * time.Millisecond, HeaderBytes: 16 << 10,
		Header: 3 * time.Second, Read: 5 * time.Second, Write: 30 * time.Second, Idle: 2 * time.Minute,
	})
}

// healthServer returns nil if it is not configured. Every replica runs it from the start.
func (p *program) healthServer(ctx context.Context) (manager.Runnable, error) {
	mux := http.NewServeMux()
	mux.Handle("/healthz", healthz.CheckHandler{Checker: healthz.Ping})
	mux.Handle("/readyz", healthz.CheckHandler{Checker: p.isReady})
	// The kubelet restarts the container if its probes fail, so other clients must not block the
	// probes. The server accepts many connections. If too many are open, one without a complete
	// request is closed after 200 ms.
	return p.httpServer(ctx, "the health server", p.cfg.HealthListen, nil, httpserver.Requests(mux, probesAtOnce, time.Second), httpserver.Limits{
		Connections: 256, Kept: 64, Patience: 200 * time.Millisecond, HeaderBytes: 4 << 10,
		Header: 5 * time.Second, Read: 5 * time.Second, Write: 5 * time.Second, Idle: 30 * time.Second,
	})
}

// httpServer returns nil if the address is "" or "0". The port uses TLS if certificates is not nil.
func (p *program) httpServer(ctx context.Context, name, address string, certificates *tls.Config, handler http.Handler, limits httpserver.Limits) (manager.Runnable, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	server := httpserver.New(name, handler, limits, p.log)
	listener, err := server.Listen(ctx, address, certificates)
	if err != nil {
		return nil, err
	}
	within := answersWithin
	// A manager starts parts of the type manager.Server first: before its caches are filled, and on
	// replicas that do not lead.
	return &manager.Server{Name: name, Server: server.HTTP, Listener: listener, ShutdownTimeout: &within}, nil
}
