package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/receiver"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/providers/hosts"
	hostsettings "drydock.dev/drydock/remediations/providers/hosts/settings"
	"drydock.dev/drydock/remediations/rescue"
)

// program holds the parts of the process that need no API server. newManager makes the others, and
// again if the process loses the lead and does not end.
type program struct {
	cfg     *config.Config
	rest    *rest.Config
	writes  *rest.Config
	clients kubernetes.Interface
	alerts  *alertmanager.Client
	posts   *posts
	others  others
	recv    *receiver.Server
	// token is the bearer token that Alertmanager sends. It is nil unless Drydock generates it.
	// secrets are all values that Drydock generates, including token.
	token   *kube.OwnSecret
	secrets []*kube.OwnSecret
	// hosts is nil if providers.hosts is not configured.
	hosts *hosts.Client
	// rescue is nil if controlPlane is not configured.
	rescue *rescue.Rescue
	// reg registers the metrics that last as long as the process.
	reg prometheus.Registerer
	// nodes returns all Nodes in the cache.
	providers []provider
	nodes     func(context.Context) ([]*corev1.Node, error)
	pprof     string
	log       logr.Logger

	// The receiver passes its alerts to door, which writes each alert on its Node. recorder sends
	// Events. Until the cache has all Nodes, door accepts no alerts and recorder is nil.
	door     intake.Door
	recorder atomic.Pointer[engine.Recorder]
	// ready returns the reason if the running manager is not ready. It is nil while no manager runs.
	ready atomic.Pointer[func() error]
}

// newProgram starts nothing.
func newProgram(cfg *config.Config, restConfig *rest.Config, pprof string, log logr.Logger) (*program, error) {
	// The client has no rate limit, because the API server limits Drydock by priority and fairness.
	// With a limit in the client, a repair's write would wait behind the writes for a burst of
	// alerts.
	restConfig.QPS = -1
	// Within a cluster, compression costs more time than it saves. kube-controller-manager and the
	// scheduler do not compress either.
	restConfig.DisableCompression = true
	bounded(restConfig)
	p := &program{cfg: cfg, providers: providers, rest: restConfig, reg: metrics.Registry, pprof: pprof, log: log}
	if err := p.makeClients(); err != nil {
		return nil, err
	}
	var err error
	if p.rescue, err = p.newRescue(); err != nil {
		return nil, err
	}
	if p.recv, err = p.newReceiver(); err != nil {
		return nil, err
	}
	registerBuildInfo(metrics.Registry)
	registerInfo(metrics.Registry, cfg)
	return p, nil
}

// makeClients sends no request, so an error means that the configuration is wrong.
func (p *program) makeClients() (err error) {
	p.writes = rest.CopyConfig(p.rest)
	p.writes.Timeout = apiTimeout
	// Nodes and Leases take far less time and memory in Protobuf than in JSON, here and at the API
	// server. A large cluster has 5,000 of each.
	p.writes.ContentType, p.writes.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	if p.clients, err = kubernetes.NewForConfig(p.writes); err != nil {
		return fmt.Errorf("making the API server's client: %w", err)
	}
	p.posts = newPosts(p.cfg, p.clients, p.log)
	if h, ok := config.Of[*hostsettings.Hosts](p.cfg); ok {
		if p.hosts, err = hosts.New(hosts.Options{Hosts: *h}); err != nil {
			return err
		}
	}
	p.makeSecrets()
	if err := p.tryProviders(); err != nil {
		return err
	}
	p.alerts, err = newAlertmanager(p.cfg, p.reg)
	return err
}

// tryProviders makes each provider once and discards it, so that a wrong configuration ends the
// program at its start. Later, the fault may look like an API server that does not answer: with a
// control plane, the program would retry forever.
func (p *program) tryProviders() error {
	j := &joined{program: p, reg: prometheus.NewRegistry()}
	for _, k := range kinds {
		if _, err := k.join(j, &engine.Options{}); err != nil {
			return err
		}
	}
	_, _, err := p.newActuators(nil)
	return err
}

func (p *program) isReady(*http.Request) error {
	ready := p.ready.Load()
	if ready == nil {
		return errors.New("the API server has not answered yet")
	}
	return (*ready)()
}

// linking returns a part that starts once the cache has all Nodes. While it runs, the program can
// write alerts on Nodes and send Events.
func (p *program) linking(in intake.Intake, recorder engine.Recorder) manager.Runnable {
	return unelected(func(ctx context.Context) error {
		p.door.Open(in)
		p.recorder.Store(&recorder)
		if p.rescue == nil {
			return p.recv.Start(ctx)
		}
		<-ctx.Done() // the receiver already accepts alerts
		return nil
	})
}

// unelected is a manager's part that also runs on replicas that do not lead.
type unelected func(context.Context) error

func (f unelected) Start(ctx context.Context) error { return f(ctx) }
func (unelected) NeedLeaderElection() bool          { return false }

// Event sends an Event if a manager runs. Without an API server, there is no manager and the Event
// is lost, so callers also log what it says.
func (p *program) Event(regarding string, e engine.Event) {
	if recorder := p.recorder.Load(); recorder != nil {
		(*recorder).Event(regarding, e)
	}
}
