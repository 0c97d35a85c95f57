package main

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/receiver"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

const (
	// apiTimeout bounds one request to the API server, watches apart.
	apiTimeout = 10 * time.Second
	// callMargin is what a call to a provider may take beyond the provider's own timeout.
	callMargin = 15 * time.Second
	// keepAlive is client-go's own for connections to the API server.
	keepAlive = 30 * time.Second
	// stopWithin is how long everything may take to stop, calls under way included.
	stopWithin = 8 * time.Second
)

// newManager joins all that needs the API server. Nothing runs before its Start. Its metrics go to reg.
func (p *program) newManager(ctx context.Context, reg prometheus.Registerer) (manager.Manager, error) {
	mgr, err := manager.New(p.rest, p.managerOptions())
	if err != nil {
		return nil, p.starting("preparing to run", err)
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return nil, p.starting("watching Nodes", err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("watching Nodes: the cache gives a %T", informer)
	}
	fleet := kube.Fleet{Client: p.clients, Indexer: shared.GetIndexer(), Now: time.Now, Keep: p.cfg.Core.HoldWhen.Keys(remediations.MarkAnnotation)}
	tell := kube.Events{Recorder: mgr.GetEventRecorder("drydock"), Node: fleet.Cached, Ledger: types.NamespacedName(p.cfg.Ledger)}

	side, err := newSidecars(p.cfg, p.clients, p.writes, reg)
	if err != nil {
		return nil, err
	}
	mesh, err := newLeaders(p.cfg, p.clients, fleet)
	if err != nil {
		return nil, err
	}
	eng, err := p.newEngine(fleet, side, mesh, tell, reg)
	if err != nil {
		return nil, err
	}
	if _, err := shared.AddEventHandler(noticing(eng)); err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	var servers []manager.Runnable
	if p.rescue == nil { // else runApart has them
		if servers, err = p.servers(ctx); err != nil {
			return nil, err
		}
	}
	parts := append(servers, eng, p.posts.arrivals, p.linking(p.newInbox(fleet, mesh, eng, tell), tell))
	for _, r := range parts {
		if err := mgr.Add(r); err != nil {
			return nil, fmt.Errorf("preparing to run: %w", err)
		}
	}
	admission, err := addWebhook(mgr, p.cfg, p.clients, fleet, reg, p.log)
	if err != nil {
		return nil, err
	}
	ready := func() error {
		if !shared.HasSynced() {
			return errors.New("the cache of Nodes is not filled yet")
		}
		return errors.Join(p.recv.Ready(), admission())
	}
	p.ready.Store(&ready)
	return mgr, nil
}

func (p *program) managerOptions() manager.Options {
	stop := stopWithin
	le := p.cfg.LeaderElection
	return manager.Options{
		Logger: p.log,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: kube.TrimTransform(p.cfg.Core.HoldWhen.Keys(remediations.MarkAnnotation)...)}},
		},
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // Drydock's own servers have limits
		HealthProbeBindAddress:        "0",
		PprofBindAddress:              p.pprof,
		LeaderElection:                le.Enabled,
		LeaderElectionConfig:          apart(p.rest),
		LeaderElectionID:              le.Lease.Name,
		LeaderElectionNamespace:       le.Lease.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &le.LeaseDuration,
		RenewDeadline:                 &le.RenewDeadline,
		RetryPeriod:                   &le.RetryPeriod,
		GracefulShutdownTimeout:       &stop,
	}
}

// apart is a configuration whose clients have connections of their own: in a storm the leader's Lease must not wait behind
// everything else on one. Clients of equal configurations share theirs; a dialler of its own makes this one unequal.
func apart(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: apiTimeout, KeepAlive: keepAlive}).DialContext
	}
	return c
}

// noticing wakes the engine for changes that could change a decision.
func noticing(eng *engine.Engine) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { eng.Notice() },
		DeleteFunc: func(any) { eng.Notice() },
		UpdateFunc: func(before, after any) {
			a, okA := before.(*corev1.Node)
			b, okB := after.(*corev1.Node)
			if !okA || !okB || kube.Matters(a, b) {
				eng.Notice()
			}
		},
	}
}

func (p *program) newEngine(fleet kube.Fleet, side engine.Sidecars, mesh engine.Locations, tell engine.Recorder, reg prometheus.Registerer) (*engine.Engine, error) {
	cfg, clients := p.cfg, p.clients
	var eng *engine.Engine // a call's late answer goes to the engine that the actuators are made for
	actuators, callTimeout, err := p.newActuators(func(node, attempt string, outcome remediations.CallOutcome, why error) {
		eng.Late(node, attempt, outcome, why)
	})
	if err != nil {
		return nil, err
	}
	var silencer engine.Silencer
	if cfg.Alertmanager.SilenceRepairs {
		silencer = alertmanager.Repairs{Client: p.alerts}
	}
	eng = engine.New(engine.Options{
		Silencer: silencer, Sidecars: side, Locations: mesh, NewTask: newTask,
		Config: cfg.Core, Fleet: fleet, Journal: kube.Journal{Client: clients, Keep: fleet.Keep},
		Store:  kube.LedgerStore{Client: clients, Namespace: cfg.Ledger.Namespace, Name: cfg.Ledger.Name, Version: thisBuild().Now()},
		Alerts: p.alerts, Actuators: actuators, Witnesses: map[remediations.SignKind]engine.Witness{remediations.SignDaemonSetPod: kube.PodWitness{Client: clients}}, Workers: map[string]engine.Worker{"drain": kube.Drainer{Client: clients, Now: time.Now}}, Events: tell, Metrics: reg,
		Clock: clock.RealClock{}, Log: p.log.WithName("engine"), PollInterval: cfg.Alertmanager.PollInterval,
		CallTimeout: callTimeoutOf(cfg, callTimeout), NewID: newID, Posts: p.posts.known,
	})
	return eng, nil
}

// newID gives a repair's id: six characters that are easy to read out, 30 bits.
func newID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:6]
}

func newAlertmanager(cfg *config.Config) (*alertmanager.Client, error) {
	o := alertmanager.Options{
		HTTPConfig: cfg.Alertmanager.HTTPConfig, Registerer: metrics.Registry,
		Keep: cfg.Core.Wants, SelfTest: cfg.Core.IsSelfTest, Receiver: cfg.Alertmanager.Receiver,
	}
	for _, u := range cfg.Alertmanager.URLs {
		o.URLs = append(o.URLs, u.String())
	}
	if len(cfg.Alertmanager.Watchdog) > 0 {
		o.Watchdog = cfg.Alertmanager.Watchdog.String()
	}
	for _, m := range cfg.Alertmanager.BlindWhen {
		o.BlindWhen = append(o.BlindWhen, m.String())
	}
	return alertmanager.New(o)
}

func (p *program) newInbox(fleet kube.Fleet, mesh engine.Locations, eng *engine.Engine, tell engine.Recorder) kube.Inbox {
	return kube.Inbox{
		Config: p.cfg.Core, Client: p.clients, Node: fleet.Cached, Hosts: kube.Pods{Client: p.clients}.Hosts, Carrier: fleet.Carrier, Leads: leads(mesh), Now: time.Now, Arrived: p.posts.arrivals.Arrived,
		Turns: make(chan struct{}, kube.WritesAtOnce), Room: kube.NewRoom(), Expected: eng.Expect, Ended: eng.News,
		Full: func(node string) {
			tell.Event(node, engine.Event{Warning: true, Reason: "AlertsRefused", Action: "NodeFull", Note: fmt.Sprintf("the node carries %d alerts or %d bytes of Drydock's already; further ones wait until some resolve", remediations.MaxAlertsPerNode, remediations.MaxBytesPerNode)})
		},
	}
}

func (p *program) newReceiver() (*receiver.Server, error) {
	r := p.cfg.Receiver
	var takes engine.AlertRecorder = &p.door
	if p.rescue != nil {
		takes = p.rescue.First(takes)
	}
	return receiver.New(receiver.Options{
		Listen: r.Listen, TokenFile: r.TokenFile, Insecure: r.Insecure, MaxBodyBytes: r.MaxBodyBytes,
		TLS:      receiver.TLSFiles{CertFile: r.TLS.CertFile, KeyFile: r.TLS.KeyFile, ClientCAFile: r.TLS.ClientCAFile},
		Recorder: takes, Refused: p.posts.refuse,
		Oversized: func() {
			p.Event("", engine.Event{Warning: true, Reason: "PostTooLarge", Action: "Refused", Note: fmt.Sprintf("Alertmanager posted more than receiver.maxBodyBytes (%d); group its route by node (group_by: [alertname, node])", r.MaxBodyBytes)})
		},
		Registerer: metrics.Registry, Logger: p.log.WithName("receiver"),
	})
}

func registerBuildInfo(reg prometheus.Registerer) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "drydock_build_info", Help: "1, with the version that runs.",
		ConstLabels: prometheus.Labels{"version": thisBuild().Now()},
	})
	info.Set(1)
	reg.MustRegister(info)
}
