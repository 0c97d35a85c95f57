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

// Components selects which parts of the lab are started.
type Components int

const (
	// Everything starts the control plane, KWOK, kube-state-metrics, Prometheus and Alertmanager.
	Everything Components = iota
	// APIServerOnly starts etcd and kube-apiserver. Nodes exist, but have no leases, and no
	// controller acts on them.
	APIServerOnly
	// ControlPlane starts etcd, kube-apiserver, kube-controller-manager and KWOK.
	ControlPlane
)

// Options configure a lab. The zero value is a whole lab without nodes.
type Options struct {
	Components Components

	// Nodes is the number of plain nodes: node-0, node-1 and so on.
	Nodes     int
	NodeSpecs []NodeSpec
	// NodeGrace is how long a node may be silent before kube-controller-manager sets Ready=Unknown.
	// 0 means DefaultNodeGrace. Leases are renewed at least three times in that period, so use
	// minutes for thousands of nodes.
	NodeGrace time.Duration

	RuleFiles []string
	// RuleFor replaces `for` and `keep_firing_for` of every rule. Nil changes nothing.
	RuleFor *time.Duration
	// Interval is how often Prometheus scrapes and evaluates. 0 means 1 s.
	Interval       time.Duration
	ExternalLabels map[string]string
	// Scrape adds jobs: by name, the host:port addresses that serve /metrics.
	Scrape        map[string][]string
	ScrapeConfigs []map[string]any
	// Sidecars adds the blackbox exporter, and the files in deploy/ for Sei's sidecars.
	// StartSidecars starts the simulated sidecars themselves.
	Sidecars bool

	// Alertmanagers is their number. 0 means one with Everything and otherwise none, and a negative
	// number means none. Without Prometheus they have only the alerts that a test posts.
	Alertmanagers       int
	AlertmanagerCluster bool
	// AlertmanagerConfig replaces the lab's own configuration, which sends everything but the
	// Watchdog to Webhook.
	AlertmanagerConfig string
	// GroupWait is for the lab's own configuration. 0 means that alerts are sent at once.
	GroupWait time.Duration
	// GroupInterval is for the lab's own configuration. 0 means 1 s.
	GroupInterval time.Duration
	// RepeatInterval is for the lab's own configuration. 0 means 4 h.
	RepeatInterval time.Duration
	// Webhook receives the alerts. Without a URL, no alert is sent until SetWebhook is called.
	Webhook WebhookTarget

	// SharedControllerIdentity runs all controllers as
	// system:kube-controller-manager, without --use-service-account-credentials.
	SharedControllerIdentity bool

	// NodeControllers starts, in place of kube-controller-manager, only its two controllers that
	// manage nodes. They compile faster.
	NodeControllers bool

	APIServerFlags []string
	// NoPods means that the nodes never have pods, so the lab needs no KWOK.
	NoPods bool

	// APIServers starts a control plane elsewhere, in place of the lab's etcd and kube-apiserver,
	// and returns its URL when it is ready. The nodes then have kubelets of their own, so the lab
	// runs no KWOK, which would manage all nodes.
	APIServers func(context.Context, Credentials) (url string, err error)

	// Dir is the folder for everything that the lab writes. It is never removed. Empty means a
	// temporary folder that Stop removes.
	Dir string
	Out io.Writer
}

// DefaultNodeGrace is long enough for three renewals of a lease. With half of it, an idle lab with
// 80 nodes would cost twice as much, and nodes would become Unknown if a busy machine stops for a
// few seconds.
const DefaultNodeGrace = 20 * time.Second

// LongNodeGrace is for labs whose tests never wait for a lost node. Even on a busy machine, no node
// then becomes Unknown by accident.
const LongNodeGrace = 2 * time.Minute

// NodeSpec describes a node that the lab creates.
type NodeSpec struct {
	Name         string
	Labels       map[string]string
	Taints       []corev1.Taint
	ProviderID   string              // if empty, the lab gives a unique one
	BootID       string              // if empty, the lab gives a unique one
	Allocatable  corev1.ResourceList // in addition to cpu 8, memory 32Gi, pods 110
	Zone         string              // the value of topology.kubernetes.io/zone
	Pool         string              // the value of kubernetes.civo.com/civo-node-pool
	ControlPlane bool                // whether the node has node-role.kubernetes.io/control-plane
}

// WebhookTarget is where Alertmanager posts alerts.
type WebhookTarget struct {
	URL       string
	TokenFile string // the file with the bearer token; if empty, no token is sent
	CAFile    string // the authority of an https URL; if empty, the system's authorities
	// Config is merged over the lab's own configuration of Alertmanager, key by key.
	Config map[string]any
}

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
	// A lease lasts whole seconds, and must be renewed several times within that duration.
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

// A lease lasts a little less than NodeGrace. With real kubelets it is 40 s of 50 s.
func (o Options) leaseSeconds() int32 { return max(2, int32(o.NodeGrace.Seconds()*9/10)) }

// renewEvery returns a third of NodeGrace, or less if a renewal could otherwise not be 6 s late
// within NodeGrace: on an overloaded machine it may be that late.
func (o Options) renewEvery() time.Duration {
	return max(o.NodeGrace/5, min(o.NodeGrace/3, o.NodeGrace-6*time.Second))
}

func (o Options) kubelets() bool {
	return o.Components != APIServerOnly && o.APIServers == nil
}

func (o Options) kwok() bool { return o.kubelets() && !o.NoPods }

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

// The default is the newest version. DRYDOCK_KUBERNETES selects another minor version, for example
// 1.30.
func apiServer() string {
	if minor := os.Getenv("DRYDOCK_KUBERNETES"); minor != "" {
		return "kube-apiserver-" + minor
	}
	return "kube-apiserver"
}
