package main

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
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

// newManager joins all parts. Nothing runs before its Start.
func newManager(ctx context.Context, cfg *config.Config, restConfig *rest.Config, pprof string, log logr.Logger) (manager.Manager, error) {
	// The API server's own priority and fairness bounds us; a client-side limit would only delay a repair's writes
	// behind those of a storm.
	restConfig.QPS = -1
	writes := rest.CopyConfig(restConfig)
	writes.Timeout = apiTimeout
	// A Node or five thousand leases take a fraction of JSON's time and room, here and at the API server.
	writes.ContentType, writes.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	clients, err := kubernetes.NewForConfig(writes)
	if err != nil {
		return nil, fmt.Errorf("making the API server's client: %w", err)
	}
	stop := stopWithin
	le := cfg.LeaderElection
	mgr, err := manager.New(restConfig, manager.Options{
		Logger: log,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: kube.TrimTransform}},
		},
		Metrics:                       metricsserver.Options{BindAddress: cfg.MetricsListen},
		HealthProbeBindAddress:        cfg.HealthListen,
		PprofBindAddress:              pprof,
		LeaderElection:                le.Enabled,
		LeaderElectionConfig:          apart(restConfig),
		LeaderElectionID:              le.Lease.Name,
		LeaderElectionNamespace:       le.Lease.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &le.LeaseDuration,
		RenewDeadline:                 &le.RenewDeadline,
		RetryPeriod:                   &le.RetryPeriod,
		GracefulShutdownTimeout:       &stop,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to run: %w", err)
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("watching Nodes: the cache gives a %T", informer)
	}
	fleet := kube.Fleet{Client: clients, Indexer: shared.GetIndexer(), Now: time.Now}
	tell := recorder{events: mgr.GetEventRecorder("drydock"), node: fleet.Cached, ledger: cfg.Ledger}

	posts := newPosts(cfg, clients, log)
	side, err := newSidecars(cfg, clients, writes)
	if err != nil {
		return nil, err
	}
	eng, err := newEngine(cfg, clients, fleet, posts, side, tell, log)
	if err != nil {
		return nil, err
	}
	if _, err := shared.AddEventHandler(noticing(eng)); err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	recv, err := newReceiver(cfg, clients, fleet, posts, eng.News, tell, log)
	if err != nil {
		return nil, err
	}
	for _, r := range []manager.Runnable{eng, recv, posts.arrivals} {
		if err := mgr.Add(r); err != nil {
			return nil, fmt.Errorf("preparing to run: %w", err)
		}
	}
	admission, err := addWebhook(mgr, cfg, clients, fleet, tell, log)
	if err != nil {
		return nil, err
	}
	ready := func(*http.Request) error {
		if !shared.HasSynced() {
			return errors.New("the cache of Nodes is not filled yet")
		}
		return errors.Join(recv.Ready(), admission())
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ready", ready)); err != nil {
		return nil, fmt.Errorf("preparing to run: %w", err)
	}
	registerBuildInfo(metrics.Registry)
	return mgr, nil
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

func newEngine(cfg *config.Config, clients kubernetes.Interface, fleet kube.Fleet, posts *posts, side engine.Sidecars, tell engine.Recorder, log logr.Logger) (*engine.Engine, error) {
	am, err := newAlertmanager(cfg)
	if err != nil {
		return nil, err
	}
	var eng *engine.Engine // a call's late answer goes to the engine that the actuators are made for
	actuators, callTimeout, err := newActuators(cfg, func(node, attempt string, outcome remediations.CallOutcome, why string) {
		eng.Late(node, attempt, outcome, why)
	})
	if err != nil {
		return nil, err
	}
	var silencer engine.Silencer
	if cfg.Alertmanager.SilenceRepairs {
		silencer = repairSilencer{am}
	}
	eng = engine.New(engine.Options{
		Silencer: silencer, Sidecars: side, NewTask: newTask,
		Config: cfg.Core, Fleet: fleet, Journal: kube.Journal{Client: clients},
		Store:  kube.LedgerStore{Client: clients, Namespace: cfg.Ledger.Namespace, Name: cfg.Ledger.Name},
		Alerts: alertSource{am}, Actuators: actuators, Workers: map[string]engine.Worker{"drain": drainer{kube.Drainer{Client: clients, Now: time.Now}}}, Events: tell, Metrics: metrics.Registry,
		Clock: clock.RealClock{}, Log: log.WithName("engine"), PollInterval: cfg.Alertmanager.PollInterval,
		CallTimeout: callTimeout, NewID: newID, Posts: posts.known,
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

// alertSource gives the engine Alertmanager's word in the core's terms.
type alertSource struct{ client *alertmanager.Client }

func (s alertSource) Look(ctx context.Context) []remediations.ReplicaWord {
	snapshot := s.client.Poll(ctx)
	words := make([]remediations.ReplicaWord, 0, len(snapshot.Replicas))
	for _, r := range snapshot.Replicas {
		w := remediations.ReplicaWord{URL: r.URL, Err: r.Err, Watchdog: r.Watchdog, WatchdogAt: r.WatchdogAt, BlindBy: strings.Join(r.BlindBy, ", "), Alerts: make(map[string]remediations.AlertWord, len(r.Alerts)), Silences: make(map[string]remediations.Silence, len(r.Silences)), Inhibitors: r.Inhibitors}
		w.SelfTest, w.NoReceiver, w.Akin = selfTestsOf(r), r.NoReceiver, r.Akin
		for id, s := range r.Silences {
			w.Silences[id] = remediations.Silence{Author: s.Author, Comment: s.Comment, EndsAt: s.EndsAt}
		}
		for fingerprint, a := range r.Alerts {
			w.Alerts[fingerprint] = remediations.AlertWord{
				Labels: a.Labels, StartsAt: a.StartsAt, EndsAt: a.EndsAt, UpdatedAt: a.UpdatedAt, Active: a.State == alertmanager.StateActive,
				SilencedBy: a.SilencedBy, InhibitedBy: a.InhibitedBy, MutedBy: a.MutedBy,
			}
		}
		words = append(words, w)
	}
	return words
}

// repairSilencer makes Drydock's own silences.
type repairSilencer struct{ client *alertmanager.Client }

func (s repairSilencer) Silence(ctx context.Context, labels map[string]string, until time.Time, comment string) (string, error) {
	return s.client.Silence(ctx, alertmanager.NewSilence{Matchers: labels, StartsAt: time.Now(), EndsAt: until, Author: "drydock", Comment: comment})
}

func (s repairSilencer) Expire(ctx context.Context, id string) error { return s.client.Expire(ctx, id) }

func newReceiver(cfg *config.Config, clients kubernetes.Interface, fleet kube.Fleet, posts *posts, ended func(), tell engine.Recorder, log logr.Logger) (*receiver.Server, error) {
	inbox := kube.Inbox{
		Config: cfg.Core, Client: clients, Node: fleet.Cached, Hosts: kube.Pods{Client: clients}.Hosts, Now: time.Now, Arrived: posts.arrivals.Arrived,
		Turns: make(chan struct{}, kube.WritesAtOnce), Ended: ended,
		Full: func(node string) {
			tell.Event(node, engine.Event{Warning: true, Reason: "AlertsRefused", Action: "NodeFull", Note: fmt.Sprintf("the node carries %d alerts or %d bytes of Drydock's already; further ones wait until some resolve", remediations.MaxAlertsPerNode, remediations.MaxBytesPerNode)})
		},
	}
	r := cfg.Receiver
	return receiver.New(receiver.Options{
		Listen: r.Listen, TokenFile: r.TokenFile, Insecure: r.Insecure, MaxBodyBytes: r.MaxBodyBytes,
		TLS: receiver.TLSFiles{CertFile: r.TLS.CertFile, KeyFile: r.TLS.KeyFile, ClientCAFile: r.TLS.ClientCAFile},
		Recorder: receiver.RecorderFunc(func(ctx context.Context, a receiver.Alert) (receiver.Result, error) {
			result, err := inbox.Record(ctx, a.Labels, a.Status, a.StartsAt)
			return receiver.Result(result), err
		}),
		Refused: posts.refuse,
		Oversized: func() {
			tell.Event("", engine.Event{Warning: true, Reason: "PostTooLarge", Action: "Refused", Note: fmt.Sprintf("Alertmanager posted more than receiver.maxBodyBytes (%d); group its route by node (group_by: [alertname, node])", r.MaxBodyBytes)})
		},
		Registerer: metrics.Registry, Logger: log.WithName("receiver"),
	})
}

// recorder sends Events about Nodes, or about Drydock itself, by its ledger.
type recorder struct {
	events events.EventRecorder
	node   func(string) *corev1.Node
	ledger config.ObjectName
}

// noteLimit is the API server's bound of an Event's note, in bytes.
const noteLimit = 1024

func (r recorder) Event(regarding string, e engine.Event) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: r.ledger.Namespace, Name: r.ledger.Name}
	switch o := e.About; {
	case o != nil:
		ref = &corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)}
	case regarding != "":
		ref = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: regarding}
		if n := r.node(regarding); n != nil {
			ref.UID = n.UID
		}
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	note := e.Note
	if len(note) > noteLimit {
		note = strings.ToValidUTF8(note[:noteLimit-len("…")], "") + "…"
	}
	r.events.Eventf(ref, nil, kind, e.Reason, e.Action, "%s", note)
}

func registerBuildInfo(reg prometheus.Registerer) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "drydock_build_info", Help: "1, with the version that runs.",
		ConstLabels: prometheus.Labels{"version": versionNow()},
	})
	info.Set(1)
	reg.MustRegister(info)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
