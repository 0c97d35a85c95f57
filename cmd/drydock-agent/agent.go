package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/internal/mesh"
	"drydock.dev/drydock/internal/mesh/probe"
)

const (
	keysEvery = 10 * time.Second
	// maxConnections counts the connections of Prometheus and of the kubelet's probes together.
	maxScrapes     = 4
	maxConnections = 128
	maxHeaderBytes = 16 << 10
	patience       = 200 * time.Millisecond
	headerTime     = 5 * time.Second
	answerTime     = 10 * time.Second
	stopWithin     = 3 * time.Second
)

type agent struct {
	options  options
	payload  int
	log      logr.Logger
	registry *prometheus.Registry
	keys     *probe.Keys
	server   *probe.Server
	watch    *mesh.Watch
	prober   *mesh.Prober
}

// newAgent opens no port and sends no request. start does.
func newAgent(o options, restConfig *rest.Config, log logr.Logger) (*agent, error) {
	a := &agent{options: o, log: log, registry: prometheus.NewRegistry()}
	var err error
	if a.keys, err = probe.ReadKeys(o.keyFile); err != nil {
		return nil, err
	}
	if a.payload, err = probe.Fitting(o.payload); err != nil {
		return nil, fmt.Errorf("reading the MTU of the pod's network: %w", err)
	}
	if a.payload < o.payload {
		log.Info("--payload is too long for the MTU of this pod's network; the longest possible payload is used", "payload", o.payload, "used", a.payload)
	}
	a.server, err = probe.NewServer(probe.ServerOptions{
		Listen: o.listen, Node: o.node, Keys: a.keys.Current, Now: time.Now, Registerer: a.registry, Log: log.WithName("probe"),
	})
	if err != nil {
		return nil, err
	}
	port, err := portOf(o.listen)
	if err != nil {
		return nil, err
	}
	a.watch, err = mesh.NewWatch(mesh.WatchOptions{
		Config: restConfig, Node: o.node, Namespace: o.namespace, Service: o.service, Port: port,
		TopologyLabel: o.topologyLabel, Now: time.Now, Log: log.WithName("mesh"),
	})
	if err != nil {
		return nil, err
	}
	client := probe.Client{Node: o.node, Keys: a.keys.Current, Now: time.Now, Rand: rand.Reader, Payload: a.payload}
	a.prober, err = mesh.NewProber(mesh.ProberOptions{
		Topology: a.watch.Topology, Age: a.watch.Age, Ask: client.Probe, Interval: o.interval,
		Rand: mathrand.New(mathrand.NewPCG(mathrand.Uint64(), mathrand.Uint64())), Seed: maphash.MakeSeed(), //nolint:gosec // jitter need not be secret
		Registerer: a.registry, Log: log.WithName("mesh"),
	})
	if err != nil {
		return nil, err
	}
	registerBuildInfo(a.registry)
	return a, nil
}

func (a *agent) start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.serve(ctx) })
	group.Go(func() error { return a.server.Start(ctx) })
	group.Go(func() error { return a.watch.Start(ctx) })
	group.Go(func() error { return a.prober.Start(ctx) })
	group.Go(func() error { a.keys.Watch(ctx, keysEvery, a.log); return nil })
	return group.Wait()
}

func (a *agent) serve(ctx context.Context) error {
	server := httpserver.New("the metrics server", a.routes(), httpserver.Limits{
		Connections: maxConnections, Kept: maxConnections / 2, Patience: patience, HeaderBytes: maxHeaderBytes,
		Header: headerTime, Read: headerTime, Write: answerTime, Idle: time.Minute,
	}, a.log)
	listener, err := server.Listen(ctx, a.options.metrics, nil)
	if err != nil {
		return err
	}
	a.log.Info("serving metrics", "address", listener.Addr().String())
	return server.Serve(ctx, listener, stopWithin, func() {})
}

func (a *agent) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

// ready depends only on this process: if the API server stops answering later, the agent stays
// ready.
func (a *agent) ready() error {
	select {
	case <-a.server.Listening():
		return a.watch.Ready()
	default:
		return errors.New("the probe port does not listen yet")
	}
}

func registerBuildInfo(reg prometheus.Registerer) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "drydock_mesh_agent_build_info", Help: "Always 1. The label version has the version of the running agent.",
		ConstLabels: prometheus.Labels{"version": thisBuild().Now()},
	})
	info.Set(1)
	reg.MustRegister(info)
}
