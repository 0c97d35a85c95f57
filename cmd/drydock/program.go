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

// program is the parts of one process. Parts made with it need no API server and last as long as
// the process. newManager makes the parts that need one, and makes them again each time that the
// lead was lost.
type program struct {
	cfg     *config.Config
	rest    *rest.Config
	writes  *rest.Config
	clients kubernetes.Interface
	alerts  *alertmanager.Client
	posts   *posts
	// others are the other systems that repair nodes.
	others others
	recv   *receiver.Server
	// token is the receiver's token if Drydock generates it, otherwise nil. secrets are all values
	// that Drydock generates.
	token   *kube.OwnSecret
	secrets []*kube.OwnSecret
	// hosts is nil if no step works on hosts.
	hosts *hosts.Client
	// rescue is nil if no step is configured that works without an API server.
	rescue *rescue.Rescue
	// reg registers the metrics that last as long as the process.
	reg prometheus.Registerer
	// providers are those that act on nodes. nodes returns all Nodes in the cache.
	providers []provider
	nodes     func(context.Context) ([]*corev1.Node, error)
	pprof     string
	log       logr.Logger

	// door passes alerts to Nodes, and recorder sends Events. Without a cache of Nodes, door is shut
	// and recorder is nil.
	door     intake.Door
	recorder atomic.Pointer[engine.Recorder]
	// ready returns what the running manager lacks. Nil: no manager runs.
	ready atomic.Pointer[func() error]
}

// newProgram makes the parts that need no API server. Nothing runs yet.
func newProgram(cfg *config.Config, restConfig *rest.Config, pprof string, log logr.Logger) (*program, error) {
	// The API server's priority and fairness already limits Drydock. A limit in the client would
	// only delay a repair's writes behind those of a storm.
	restConfig.QPS = -1
	// Compression costs more time at both ends than it saves within a cluster.
	// kube-controller-manager and the scheduler do not compress either.
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

// makeClients makes the clients of the configured systems. It sends no request: an error is a fault
// of the configuration.
func (p *program) makeClients() (err error) {
	p.writes = rest.CopyConfig(p.rest)
	p.writes.Timeout = apiTimeout
	// Protobuf decodes a Node or five thousand leases in a fraction of JSON's time and memory, here
	// and at the API server.
	p.writes.ContentType, p.writes.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	if p.clients, err = kubernetes.NewForConfig(p.writes); err != nil {
		return fmt.Errorf("making the API server's client: %w", err)
	}
	p.posts = newPosts(p.cfg, p.clients, p.log)
	if h, ok := config.Of[*hostsettings.Hosts](p.cfg); ok {
		if p.hosts, err = hosts.Configured(h); err != nil {
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

// tryProviders makes each provider once and drops it, because each manager makes its own. With a
// control plane configured, a later error would look like an API server that does not answer.
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

// isReady returns what this process still lacks.
func (p *program) isReady(*http.Request) error {
	ready := p.ready.Load()
	if ready == nil {
		return errors.New("the API server has not answered yet")
	}
	return (*ready)()
}

// linking is the manager's part that lets alerts be written and Events be sent, once the cache of
// Nodes is filled.
func (p *program) linking(in intake.Intake, recorder engine.Recorder) manager.Runnable {
	return unelected(func(ctx context.Context) error {
		p.door.Open(in)
		p.recorder.Store(&recorder)
		if p.rescue == nil {
			return p.recv.Start(ctx)
		}
		<-ctx.Done() // the receiver listens already
		return nil
	})
}

// unelected is a part that runs on every replica, leader or not.
type unelected func(context.Context) error

func (f unelected) Start(ctx context.Context) error { return f(ctx) }
func (unelected) NeedLeaderElection() bool          { return false }

// Event sends an Event if that is possible now. What concerns the time without an API server is
// also in the log.
func (p *program) Event(regarding string, e engine.Event) {
	if recorder := p.recorder.Load(); recorder != nil {
		(*recorder).Event(regarding, e)
	}
}
