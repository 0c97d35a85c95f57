package kilo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	promconfig "github.com/prometheus/common/config"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/replicas"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// NodeAPI and LeaseAPI are the API server's methods that this package calls. A clientset has them.
type (
	NodeAPI interface {
		List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error)
		Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error)
		Patch(ctx context.Context, name string, kind types.PatchType, body []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Node, error)
	}
	LeaseAPI interface {
		List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error)
	}
)

// DefaultJob is the default of Options.Job. It matches the job of the chart's PodMonitor, and every
// job whose name ends with the agent's name.
const DefaultJob = "drydock-agent|.+[-/]drydock-agent"

// Options has the clients, the Prometheus servers with the probe results, and the rules for nodes
// that may lead.
type Options struct {
	// API lists, reads and patches Nodes. Leases lists the kubelets' leases.
	API    NodeAPI
	Leases LeaseAPI
	// Nodes returns all Nodes from a cache. Only Leads and LeadsAll use it, and they only read. The
	// Nodes need only their labels, pod CIDR and Kilo's annotations.
	Nodes func(ctx context.Context) ([]*corev1.Node, error)
	// TopologyLabel is the label with a node's location, like kg's flag --topology-label. The
	// default is election.DefaultTopologyLabel.
	TopologyLabel string
	// Prometheus has the URLs of the servers that scrape the agents, at least one. Every address of
	// a URL's host name is queried in turn, until one answers with data.
	Prometheus []string
	// Job is a regular expression in PromQL's syntax for the scrape jobs of the agents. The default
	// is DefaultJob.
	Job string
	// HTTPConfig has authentication and TLS settings. Drydock never follows redirects, even if
	// HTTPConfig allows them. If it has a proxy, the proxy resolves the host names.
	HTTPConfig promconfig.HTTPClientConfig
	// Timeout limits the two queries to one address together. The default is 10 s.
	Timeout time.Duration
	// MaxAge is the largest age of a member's last result about its siblings. The default is 7 min.
	// It must be long: if Prometheus is in another location, it has no results since the fault, and
	// the second candidate is tried only after the wait for the first one.
	MaxAge time.Duration
	// AllowControlPlane allows control-plane nodes to become leaders.
	AllowControlPlane bool
	// Pairs allows a move in a location of two nodes.
	Pairs bool
	// HoldWhen has the marks of other systems on nodes that they have claimed. A node with such a
	// mark does not become a leader. The default is the shipped marks.
	HoldWhen marks.List
	// Registry has the remediations, besides the shipped ones, that records on Nodes may name.
	Registry remediations.Registry
	// Resolver returns the addresses of a host name. The default is net.DefaultResolver. Tests
	// replace it.
	Resolver func(ctx context.Context, host string) ([]string, error)
	// Now returns the current time, for the age of agents' annotations and of leases.
	Now func() time.Time
}

// Mesh observes a cluster's Kilo mesh and moves its leaders. It is safe for concurrent use.
type Mesh struct {
	options   Options
	endpoints []*replicas.Endpoint
	// page is how many Nodes one answer of the API server has: pageSize, except in tests.
	page int64
	// one is a lock for the live read of all Nodes: one reader at a time is enough.
	one chan struct{}
	// last is the address of the Prometheus that answered last. The lock one guards it.
	last string
}

// New returns a Mesh. It sends no request. An error names the wrong option.
func New(o Options) (*Mesh, error) {
	if o.API == nil || o.Leases == nil || o.Nodes == nil || o.Now == nil {
		return nil, errors.New("making the Kilo provider: the API server's client, the cache of Nodes or the clock is missing")
	}
	if o.TopologyLabel == "" {
		o.TopologyLabel = election.DefaultTopologyLabel
	}
	if o.Job == "" {
		o.Job = DefaultJob
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxAge == 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.Timeout < 0 || o.MaxAge < time.Second {
		return nil, fmt.Errorf("making the Kilo provider: timeout %s or maxAge %s is too short", text.Duration(o.Timeout), text.Duration(o.MaxAge))
	}
	for i, text := range o.Prometheus {
		if u, err := url.Parse(text); err == nil && u.User != nil {
			return nil, fmt.Errorf("making the Kilo provider: URL %d of providers.kilo.prometheus has credentials in it; give them in providers.kilo.httpConfig", i+1)
		}
	}
	endpoints, err := replicas.New(replicas.Options{
		Of: "Prometheus", URLs: o.Prometheus, HTTP: o.HTTPConfig, Most: maxReplicas, Timeout: o.Timeout, Lookup: o.Resolver, Judge: judge,
	})
	if err != nil {
		return nil, fmt.Errorf("making the Kilo provider (providers.kilo.prometheus, providers.kilo.httpConfig): %w", err)
	}
	return &Mesh{options: o, endpoints: endpoints, page: pageSize, one: make(chan struct{}, 1)}, nil
}
