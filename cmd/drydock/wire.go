package main

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
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
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/providers/daemonsets"
	"drydock.dev/drydock/remediations/signs"
)

const (
	// apiTimeout bounds one request to the API server, except watches.
	apiTimeout = 10 * time.Second
	// callMargin is added to a provider's own timeout.
	callMargin = 15 * time.Second
	// keepAlive is client-go's TCP keep-alive interval.
	keepAlive = 30 * time.Second
	// stopWithin is how long all parts together may take to stop, including running calls.
	stopWithin = 8 * time.Second
)

// The next three lists define what Drydock consists of: kinds (of targets), providers, and parts
// (which a manager runs).

type kind struct {
	of remediations.Kind
	// join lets the engine observe and repair targets of this kind. The Carrier finds the node of an
	// alert about such a target. It is nil if the kind is not configured.
	join func(j *joined, o *engine.Options) (intake.Carrier, error)
}

// kinds are the kinds of targets whose repairs are recorded on Nodes. API servers are not in this
// list, because newRescue makes the part that repairs them.
var kinds = []kind{
	{remediations.KindSidecar, joinSidecars},
	{remediations.KindLocation, joinMesh},
}

type provider struct {
	name string
	// timeout bounds one call. late receives an answer that arrives after the engine has given up the
	// call.
	make func(p *program, late lateAnswer) (steps map[string]engine.Actuator, timeout time.Duration, err error)
}

type lateAnswer func(node, attempt string, outcome remediations.CallOutcome, why error)

// config.Config.Core.Providers defines which Nodes each provider serves.
var providers = []provider{
	{"civo", civoSteps},
	{"redfish", redfishSteps},
	{"clusterAPI", clusterAPISteps},
	{"karpenter", karpenterSteps},
	{"external", externalSteps},
	{"annotation", annotationSteps},
	{"hosts", hostSteps},
	{"http", httpSteps},
	{"fence", fenceSteps},
	{"daemonSets", daemonSetSteps},
	{"clusterWide", clusterWideSteps},
}

var parts = []func(ctx context.Context, j *joined) ([]manager.Runnable, error){
	func(ctx context.Context, j *joined) ([]manager.Runnable, error) {
		if j.rescue != nil {
			return nil, nil // runApart runs the receiver and the rescue
		}
		return j.servers(ctx)
	},
	func(_ context.Context, j *joined) ([]manager.Runnable, error) {
		return []manager.Runnable{j.engine, j.posts.arrivals, j.queue, j.linking(j.newIntake(), j.recorder)}, nil
	},
	func(_ context.Context, j *joined) ([]manager.Runnable, error) {
		return []manager.Runnable{j.charge, j.writePath}, nil
	},
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.keepingSecrets(), nil },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return nil, j.addWebhook() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.ending() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.endingAnnotations() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.keeping() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.keepingConditions(), nil },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.notifying(), nil },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.lookingForRepairers() },
}

// newManager makes the parts that need the API server. Start starts them.
func (p *program) newManager(ctx context.Context, reg prometheus.Registerer) (manager.Manager, error) {
	mgr, err := manager.New(p.rest, p.managerOptions())
	if err != nil {
		return nil, p.starting("preparing to run", err)
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &kube.LeanNode{})
	if err != nil {
		return nil, p.starting("watching Nodes", err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("watching Nodes: the cache returned a %T, which is not an index informer", informer)
	}
	if err := shared.AddIndexers(kube.RepairIndex()); err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	fleet := kube.Fleet{Client: p.clients, Indexer: shared.GetIndexer(), Changes: kube.NewChanges(), Now: time.Now, Keep: p.cfg.Core.Kept()}
	p.nodes = fleet.Nodes
	recorder := kube.Events{Recorder: mgr.GetEventRecorder("drydock"), Node: fleet.Cached, Ledger: types.NamespacedName(p.cfg.Ledger)}

	j := &joined{program: p, manager: mgr, fleet: fleet, recorder: recorder, reg: reg, room: intake.NewRoom(), carriers: map[remediations.Kind]intake.Carrier{}, asked: &asked{serving: time.Now()}}
	options := engine.Options{}
	for _, k := range kinds {
		carrier, err := k.join(j, &options)
		if err != nil {
			return nil, err
		}
		if carrier != nil {
			j.carriers[k.of] = carrier
		}
	}
	if err := j.makeCharge(); err != nil {
		return nil, err
	}
	j.writePath = kube.NewWritePath(p.clients, fleet.Nodes, p.cfg.Core, below, clock.RealClock{}, p.log.WithName("engine"))
	if j.queue, err = intake.NewQueue(j.charge.Guarding(j.writePath.Watching(kube.WriteAnnotations(p.clients))), clock.RealClock{}, reg, p.log.WithName("receiver")); err != nil {
		return nil, err
	}
	if j.engine, err = j.newEngine(options); err != nil {
		return nil, err
	}
	if _, err := shared.AddEventHandler(kube.Noticing(fleet.Changes, j.engine.Notice)); err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	for _, part := range parts {
		run, err := part(ctx, j)
		if err != nil {
			return nil, err
		}
		for _, r := range run {
			if err := mgr.Add(r); err != nil {
				return nil, fmt.Errorf("preparing to run: %w", err)
			}
		}
	}
	ready := func() error {
		if !shared.HasSynced() {
			return errors.New("the cache of Nodes is not filled yet")
		}
		return errors.Join(p.recv.Ready(), j.admits())
	}
	p.ready.Store(&ready)
	return mgr, nil
}

type joined struct {
	*program
	manager  manager.Manager
	fleet    kube.Fleet
	recorder engine.Recorder
	reg      prometheus.Registerer
	carriers map[remediations.Kind]intake.Carrier
	// queue has the accepted alerts that are not written on their Nodes yet.
	queue *intake.Queue
	asked *asked
	// charge claims the Lease that all Drydock installations of the cluster share. Only the holder of
	// this Lease may act.
	charge    *kube.Charge
	writePath *kube.WritePath
	// room counts alerts that the cache does not show on their Nodes yet. They count against the limit
	// of alerts per Node.
	room   *intake.Room
	engine *engine.Engine
	// conditions is nil if Drydock sets none.
	conditions *kube.Conditions
	// admits returns an error if the admission webhook is not ready.
	admits func() error
}

func (p *program) managerOptions() manager.Options {
	stop := stopWithin
	le := p.cfg.LeaderElection
	return manager.Options{
		Logger: p.log,
		Cache: cache.Options{
			Scheme:   kube.LeanScheme(), // only Nodes are cached
			ByObject: map[client.Object]cache.ByObject{&kube.LeanNode{}: {Transform: kube.LeanTransform(p.cfg.Core.Kept()...)}},
		},
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // Drydock's own server, which has limits, serves the metrics
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

// apart returns a configuration whose clients use separate connections, so that the renewal of the
// leader's Lease never waits behind many other requests. client-go shares connections between equal
// configurations. The copy has its own dialler, so it is not equal to c.
func apart(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: apiTimeout, KeepAlive: keepAlive}).DialContext
	}
	return c
}

// newEngine expects that o already has the Go interfaces for each kind of target.
func (j *joined) newEngine(o engine.Options) (*engine.Engine, error) {
	cfg, clients := j.cfg, j.clients
	var eng *engine.Engine // late answers of these actuators go to this engine
	actuators, callTimeout, err := j.newActuators(func(node, attempt string, outcome remediations.CallOutcome, why error) {
		eng.Late(node, attempt, outcome, why)
	})
	if err != nil {
		return nil, err
	}
	if cfg.Alertmanager.SilenceRepairs {
		o.Silencer = alertmanager.Repairs{Client: j.alerts}
	}
	o.Adopt = func(n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result) {
		return j.newIntake().Adopt(n, a)
	}
	o.NewTask, o.NewID, o.Below, o.Posts, o.Writes = newTask, newID, below, j.posts.known, j.writePath.Known
	o.Charge = j.charge.Lacking
	if cfg.Webhook != nil {
		o.Admission = j.asked.known
	}
	o.Config, o.Fleet, o.Writer = cfg.Core, j.fleet, kube.NodeWriter{Client: clients, Keep: j.fleet.Keep}
	o.Store = kube.LedgerStore{Client: clients, Namespace: cfg.Ledger.Namespace, Name: cfg.Ledger.Name}
	o.Alerts, o.Actuators, o.Events, o.Metrics = j.alerts, actuators, j.recorder, j.reg
	o.Witnesses = map[signs.Kind]engine.Witness{signs.DaemonSetPod: daemonsets.PodWitness{Client: clients}}
	o.Workers = map[string]engine.Worker{"drain": kube.Drainer{Client: clients, Now: time.Now}}
	if o.Reservers, err = j.newReservers(); err != nil {
		return nil, err
	}
	if j.conditions = j.newConditions(); j.conditions != nil {
		o.Conditions = j.conditions
	}
	o.Repairers = j.others.found
	o.Clock, o.Log, o.PollInterval = clock.RealClock{}, j.log.WithName("engine"), cfg.Alertmanager.PollInterval
	o.CallTimeout = max(o.CallTimeout, callTimeout)
	eng = engine.New(o)
	return eng, nil
}

// newID returns a repair's id: six characters that are easy to read aloud, 30 bits.
func newID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:6]
}

func below(n int) int { return mathrand.IntN(n) } //nolint:gosec // the runtime seeds it, and nothing secret rests on it
