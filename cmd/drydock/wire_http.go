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
	// scrapesAtOnce is how many scrapes of /metrics run at once. It bounds memory: with 5,000 nodes,
	// an answer takes some megabytes.
	scrapesAtOnce = 4
	// probesAtOnce is how many requests to /healthz and /readyz run at once.
	probesAtOnce = 8
	// scrapePatience is how long a scrape may wait for earlier scrapes. It is shorter than Prometheus'
	// default scrape timeout.
	scrapePatience = 5 * time.Second
	// answersWithin is how long requests in progress may take to finish when the process ends.
	answersWithin = 2 * time.Second
)

// servers returns the servers of /metrics and of the health endpoints, with open ports. They need
// no API server.
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

// metricsServer returns the server of /metrics, which runs on every replica from the start. It is
// nil unless it is configured.
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

// healthServer returns the server of /healthz and /readyz, which runs on every replica from the
// start. It is nil unless it is configured.
func (p *program) healthServer(ctx context.Context) (manager.Runnable, error) {
	mux := http.NewServeMux()
	mux.Handle("/healthz", healthz.CheckHandler{Checker: healthz.Ping})
	mux.Handle("/readyz", healthz.CheckHandler{Checker: p.isReady})
	// The kubelet restarts the container if its probes fail, so other clients must not block them: the
	// server accepts many connections, and a request waits only briefly when there are too many. The
	// chart gives a probe 5 s, because the kubelet may be slow, too.
	return p.httpServer(ctx, "the health server", p.cfg.HealthListen, nil, httpserver.Requests(mux, probesAtOnce, time.Second), httpserver.Limits{
		Connections: 256, Kept: 64, Patience: 200 * time.Millisecond, HeaderBytes: 4 << 10,
		Header: 5 * time.Second, Read: 5 * time.Second, Write: 5 * time.Second, Idle: 30 * time.Second,
	})
}

// httpServer opens a port and returns the server for it. It is nil if the address is empty. With
// certificates, it serves TLS.
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
	// A manager starts a manager.Server before its caches are filled and before it leads.
	return &manager.Server{Name: name, Server: server.HTTP, Listener: listener, ShutdownTimeout: &within}, nil
}
