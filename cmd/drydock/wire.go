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
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/providers/daemonsets"
	"drydock.dev/drydock/remediations/signs"
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

// What Drydock is made of are three lists: the kinds of targets, the providers, and the parts that run.

// kind is a kind of target beside nodes.
type kind struct {
	of remediations.Kind
	// join gives the engine the port that looks at its targets and repairs them, and says on which node an alert about one belongs;
	// nil: it is not configured.
	join func(j *joined, o *engine.Options) (kube.Carrier, error)
}

// kinds is the list of those whose records Nodes carry. config.Config.Core.Kinds says how alerts name their targets. The API servers
// are not among them: newRescue.
var kinds = []kind{
	{remediations.KindSidecar, joinSidecars},
	{remediations.KindLocation, joinMesh},
}

// provider makes what a configured provider carries out.
type provider struct {
	// name is its key in the configuration.
	name string
	// make gives its remediations, by name, and how long one call may take beyond what any may. late takes in answers that
	// came after a call was given up.
	make func(p *program, late lateAnswer) (steps map[string]engine.Actuator, timeout time.Duration, err error)
}

type lateAnswer func(node, attempt string, outcome remediations.CallOutcome, why error)

// providers is the list of those that act on nodes. config.Config.Core.Providers says which Nodes each of them serves.
var providers = []provider{
	{"civo", civoSteps},
	{"redfish", redfishSteps},
	{"clusterAPI", clusterAPISteps},
	{"karpenter", karpenterSteps},
	{"external", externalSteps},
	{"metal3", metal3Steps},
	{"hosts", hostSteps},
	{"http", httpSteps},
	{"daemonSets", daemonSetSteps},
	{"clusterWide", clusterWideSteps},
}

// parts is the list of what a manager runs.
var parts = []func(ctx context.Context, j *joined) ([]manager.Runnable, error){
	func(ctx context.Context, j *joined) ([]manager.Runnable, error) {
		if j.rescue != nil {
			return nil, nil // runApart has them
		}
		return j.servers(ctx)
	},
	func(_ context.Context, j *joined) ([]manager.Runnable, error) {
		return []manager.Runnable{j.engine, j.posts.arrivals, j.queue, j.linking(j.newInbox(), j.tell)}, nil
	},
	func(_ context.Context, j *joined) ([]manager.Runnable, error) {
		return []manager.Runnable{j.charge, j.writePath}, nil
	},
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.keepingSecrets(), nil },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return nil, j.addWebhook() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.ending() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.endingReboots() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.keeping() },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.keepingConditions(), nil },
	func(_ context.Context, j *joined) ([]manager.Runnable, error) { return j.lookingForRepairers() },
}

// newManager joins all that needs the API server. Nothing runs before its Start. Its metrics go to reg.
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
		return nil, fmt.Errorf("watching Nodes: the cache gives a %T", informer)
	}
	if err := shared.AddIndexers(kube.RepairIndex()); err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	fleet := kube.Fleet{Client: p.clients, Indexer: shared.GetIndexer(), Changes: kube.NewChanges(), Now: time.Now, Keep: p.cfg.Core.Kept()}
	p.nodes = fleet.Nodes
	tell := kube.Events{Recorder: mgr.GetEventRecorder("drydock"), Node: fleet.Cached, Ledger: types.NamespacedName(p.cfg.Ledger)}

	j := &joined{program: p, manager: mgr, fleet: fleet, tell: tell, reg: reg, room: kube.NewRoom(), carriers: map[remediations.Kind]kube.Carrier{}, asked: &asked{serving: time.Now()}}
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
	if j.queue, err = kube.NewQueue(j.charge.Guarding(j.writePath.Watching(kube.WriteAnnotations(p.clients))), clock.RealClock{}, reg, p.log.WithName("receiver")); err != nil {
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

// joined is what the parts of one manager share.
type joined struct {
	*program
	manager manager.Manager
	fleet   kube.Fleet
	tell    engine.Recorder
	reg     prometheus.Registerer
	// carriers say on which node an alert about a target belongs.
	carriers map[remediations.Kind]kube.Carrier
	// queue has the alerts that were taken and are not on their Nodes yet.
	queue *kube.Queue
	// asked is what came to the webhook.
	asked *asked
	// charge is this installation's hold of the cluster's Lease.
	charge *kube.Charge
	// writePath watches whether the API server takes what Drydock writes on Nodes.
	writePath *kube.WritePath
	// room counts what the cache does not show yet of what was queued.
	room   *kube.Room
	engine *engine.Engine
	// conditions keeps the Nodes' conditions; nil: they are not announced.
	conditions *kube.Conditions
	// admits says what the admission server lacks.
	admits func() error
}

func (p *program) managerOptions() manager.Options {
	stop := stopWithin
	le := p.cfg.LeaderElection
	return manager.Options{
		Logger: p.log,
		Cache: cache.Options{
			Scheme:   kube.LeanScheme(), // nothing but Nodes is cached
			ByObject: map[client.Object]cache.ByObject{&kube.LeanNode{}: {Transform: kube.LeanTransform(p.cfg.Core.Kept()...)}},
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

// newEngine makes the engine, with the ports that the kinds have put into its options.
func (j *joined) newEngine(o engine.Options) (*engine.Engine, error) {
	cfg, clients := j.cfg, j.clients
	var eng *engine.Engine // a call's late answer goes to the engine that the actuators are made for
	actuators, callTimeout, err := j.newActuators(func(node, attempt string, outcome remediations.CallOutcome, why error) {
		eng.Late(node, attempt, outcome, why)
	})
	if err != nil {
		return nil, err
	}
	if cfg.Alertmanager.SilenceRepairs {
		o.Silencer = alertmanager.Repairs{Client: j.alerts}
	}
	o.Queued = func(n *corev1.Node, key string) bool {
		_, waits := j.queue.Waiting(n, key)
		return waits
	}
	o.Adopt = kube.Inbox{Charge: j.charge.Lacks, Room: j.room, Waiting: j.queue.Waiting, Now: time.Now}.Adopting(j.queue.Offer)
	o.NewTask, o.NewID, o.Below, o.Posts, o.Writes = newTask, newID, below, j.posts.known, j.writePath.Known
	o.Charge = j.charge.Lacking
	if cfg.Webhook != nil {
		o.Admission = j.asked.known
	}
	o.Config, o.Fleet, o.Journal = cfg.Core, j.fleet, kube.Journal{Client: clients, Keep: j.fleet.Keep}
	o.Store = kube.LedgerStore{Client: clients, Namespace: cfg.Ledger.Namespace, Name: cfg.Ledger.Name}
	o.Alerts, o.Actuators, o.Events, o.Metrics = j.alerts, actuators, j.tell, j.reg
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

// newID gives a repair's id: six characters that are easy to read out, 30 bits.
func newID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:6]
}

// below gives a random number below n, which nobody can foresee.
func below(n int) int { return mathrand.IntN(n) } //nolint:gosec // the runtime seeds it, and nothing secret rests on it
