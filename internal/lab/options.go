package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Components is how much of the lab is started.
type Components int

const (
	// Everything is the control plane, KWOK, kube-state-metrics, Prometheus
	// and Alertmanager.
	Everything Components = iota
	// APIServerOnly is etcd and kube-apiserver. Nodes exist without leases, and no controller acts
	// on them.
	APIServerOnly
	// ControlPlane adds kube-controller-manager and KWOK.
	ControlPlane
)

// Options configure a lab. The zero value is a whole lab without nodes.
type Options struct {
	Components Components

	// Nodes is how many plain nodes there are, node-0 and up.
	Nodes int
	// NodeSpecs are additional nodes.
	NodeSpecs []NodeSpec
	// NodeGrace is how long a node may be silent before kube-controller-manager sets Ready=Unknown;
	// zero: DefaultNodeGrace. Each node's lease is renewed at least three times in that period. For
	// thousands of nodes that is many writes: use minutes.
	NodeGrace time.Duration

	// RuleFiles are Prometheus rule files, or PrometheusRule objects.
	RuleFiles []string
	// RuleFor replaces every rule's for and keep_firing_for; nil leaves them.
	RuleFor *time.Duration
	// Interval is how often Prometheus scrapes and evaluates; zero: 1 s.
	Interval time.Duration
	// ExternalLabels are what Prometheus adds to every alert.
	ExternalLabels map[string]string
	// Scrape adds jobs: a name, and host:port addresses that serve /metrics.
	Scrape map[string][]string
	// ScrapeConfigs are additional jobs in the format of Prometheus' configuration.
	ScrapeConfigs []map[string]any
	// Sidecars adds the blackbox exporter, and the files of deploy/ for Sei's sidecars to
	// Prometheus and kube-state-metrics. StartSidecars makes the sidecars themselves.
	Sidecars bool

	// Alertmanagers is their number; negative: none; zero: 1 with Everything, otherwise none.
	// Without Prometheus they have only the alerts that a test posts.
	Alertmanagers int
	// AlertmanagerCluster makes them gossip. Otherwise they are independent.
	AlertmanagerCluster bool
	// AlertmanagerConfig replaces the lab's own configuration, which sends
	// everything but the Watchdog to Webhook.
	AlertmanagerConfig string
	// GroupWait of the lab's own configuration; zero: at once.
	GroupWait time.Duration
	// GroupInterval of the lab's own configuration; zero: 1 s.
	GroupInterval time.Duration
	// RepeatInterval of the lab's own configuration; zero: 4 h.
	RepeatInterval time.Duration
	// Webhook receives the alerts. Without a URL they go nowhere until SetWebhook.
	Webhook WebhookTarget

	// SharedControllerIdentity runs all controllers as
	// system:kube-controller-manager, without --use-service-account-credentials.
	SharedControllerIdentity bool

	// NodeControllers runs only the two controllers of kube-controller-manager that manage nodes.
	// They compile faster.
	NodeControllers bool

	// APIServerFlags are added to the kube-apiserver's.
	APIServerFlags []string
	// NoPods: the nodes never have pods, so the lab neither builds nor starts KWOK, which runs
	// pods.
	NoPods bool

	// APIServers starts a control plane elsewhere, in place of the lab's etcd and kube-apiserver.
	// It returns the URL when the control plane is ready. Its nodes have kubelets of their own, so
	// the lab runs no KWOK, which would manage all of them.
	APIServers func(context.Context, Credentials) (url string, err error)

	// Dir receives everything that the lab writes and is never removed. Empty: a temporary folder
	// that Stop removes.
	Dir string
	// Out receives a line for each part that is ready, and the progress of builds.
	Out io.Writer
}

// DefaultNodeGrace is three renewals of a lease. Half of it would double the cost of an idle lab
// with 80 nodes, and a busy machine that stops for a few seconds would make nodes Unknown.
const DefaultNodeGrace = 20 * time.Second

// LongNodeGrace is for labs without a test that waits for a silent node: even on a busy machine, no
// node becomes Unknown.
const LongNodeGrace = 2 * time.Minute

// NodeSpec is a node to create.
type NodeSpec struct {
	Name         string
	Labels       map[string]string
	Taints       []corev1.Taint
	ProviderID   string              // empty: one of the lab's own, unique
	BootID       string              // empty: one of the lab's own, unique
	Allocatable  corev1.ResourceList // added to cpu 8, memory 32Gi, pods 110
	Zone         string              // topology.kubernetes.io/zone
	Pool         string              // kubernetes.civo.com/civo-node-pool
	ControlPlane bool                // node-role.kubernetes.io/control-plane
}

// WebhookTarget is where Alertmanager posts alerts.
type WebhookTarget struct {
	URL       string
	TokenFile string // file with the bearer token; empty: no token is sent
	CAFile    string // the authority of an https URL; empty: the system's
	// Config is merged over the lab's own configuration of Alertmanager, key by key.
	Config map[string]any
}

// withDefaults sets the defaults and refuses options that cannot work.
func (o Options) withDefaults() (Options, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.NodeGrace == 0 {
		o.NodeGrace = DefaultNodeGrace
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.GroupInterval == 0 {
		o.GroupInterval = time.Second
	}
	if o.RepeatInterval == 0 {
		o.RepeatInterval = 4 * time.Hour
	}
	if o.Alertmanagers == 0 && o.Components == Everything {
		o.Alertmanagers = 1
	}
	o.Alertmanagers = max(o.Alertmanagers, 0)
	// A lease lasts whole seconds, and is renewed several times in that.
	if o.NodeGrace < 3*time.Second {
		return o, fmt.Errorf("checking the lab's options: a NodeGrace of %s leaves no room for a lease: give at least 3s", o.NodeGrace)
	}
	specs := make([]NodeSpec, 0, o.Nodes+len(o.NodeSpecs))
	for i := range o.Nodes {
		specs = append(specs, NodeSpec{Name: fmt.Sprintf("node-%d", i)})
	}
	o.NodeSpecs = append(specs, o.NodeSpecs...)
	for _, s := range o.NodeSpecs {
		if s.Name == "" {
			return o, errors.New("checking the lab's options: a node has no name")
		}
	}
	return o, nil
}

// leaseSeconds is how long a node's lease lasts: a little less than the grace. A kubelet has 40 s
// of 50 s.
func (o Options) leaseSeconds() int32 { return max(2, int32(o.NodeGrace.Seconds()*9/10)) }

// renewEvery is how often a node's lease is renewed: three times in the grace. It is more often if
// a renewal could not be 6 s late, because labs share an overloaded machine.
func (o Options) renewEvery() time.Duration {
	return max(o.NodeGrace/5, min(o.NodeGrace/3, o.NodeGrace-6*time.Second))
}

// kubelets reports whether the lab simulates the nodes' kubelets.
func (o Options) kubelets() bool {
	return o.Components != APIServerOnly && o.APIServers == nil
}

// kwok reports whether those kubelets have pods, which KWOK runs.
func (o Options) kwok() bool { return o.kubelets() && !o.NoPods }

// programs returns the programs that must be built for these components.
func (o Options) programs() []string {
	names := []string{"etcd", apiServer()}
	switch {
	case o.Components == APIServerOnly:
	case o.NodeControllers:
		names = append(names, "node-controllers")
	default:
		names = append(names, "kube-controller-manager")
	}
	if o.kwok() {
		names = append(names, "kwok")
	}
	if o.Components == Everything {
		names = append(names, "kube-state-metrics", "prometheus")
	}
	if o.Components == Everything && o.Sidecars {
		names = append(names, "blackbox_exporter")
	}
	if o.Components == Everything || o.Alertmanagers > 0 {
		names = append(names, "alertmanager")
	}
	return names
}

// apiServer names the kube-apiserver's program: the newest, or the one of the minor version in
// DRYDOCK_KUBERNETES, for example 1.30.
func apiServer() string {
	if minor := os.Getenv("DRYDOCK_KUBERNETES"); minor != "" {
		return "kube-apiserver-" + minor
	}
	return "kube-apiserver"
}
