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

// NodeAPI and LeaseAPI are what this package calls of the API server. A clientset has them.
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

// DefaultJob is a regular expression. It matches the job of the chart's PodMonitor, and a job with
// the agent's name.
const DefaultJob = "drydock-agent|.+[-/]drydock-agent"

// Options names the cluster, the Prometheus servers with the probe results, and the nodes that may
// be chosen.
type Options struct {
	// API lists, reads and patches Nodes; Leases lists the kubelets' leases.
	API    NodeAPI
	Leases LeaseAPI
	// Nodes returns the Nodes of a cache, for Leads alone. Trimmed Nodes are enough if they keep
	// their labels, pod CIDR and Kilo's annotations. They are only read.
	Nodes func(ctx context.Context) ([]*corev1.Node, error)
	// TopologyLabel names a node's location, as kg's flag of that name does. Empty:
	// election.DefaultTopologyLabel.
	TopologyLabel string
	// Prometheus are the URLs of the servers that scrape the agents. Every address of a name is
	// queried in turn, until one answers with data. At least one.
	Prometheus []string
	// Job is a regular expression, as PromQL has it, for the scrape jobs of the agents. Empty:
	// DefaultJob.
	Job string
	// HTTPConfig has the authentication and the TLS settings. Drydock never follows redirects, even
	// if HTTPConfig allows them. With a proxy, the proxy resolves the names.
	HTTPConfig promconfig.HTTPClientConfig
	// Timeout bounds both answers of one address together. Default 10 s.
	Timeout time.Duration
	// MaxAge is how old the last result of a member about its siblings may be. Default 7 min: if
	// Prometheus is in another location, the result of the second candidate is from before the
	// fault, and the wait for the first candidate comes on top.
	MaxAge time.Duration
	// AllowControlPlane lets control-plane nodes be chosen.
	AllowControlPlane bool
	// Pairs allows the only member of a location of two nodes to become the leader.
	Pairs bool
	// HoldWhen are the marks of other systems that keep a node from use; nil: the shipped ones.
	HoldWhen marks.List
	// Registry has the remediations that records on Nodes may name, besides the shipped ones.
	Registry remediations.Registry
	// Resolver gives the addresses of a host name. Nil: net.DefaultResolver. Tests give names
	// addresses with it.
	Resolver func(ctx context.Context, host string) ([]string, error)
	// Now is the clock for the age of the last sign of a node's agent.
	Now func() time.Time
}

// Mesh knows a cluster's Kilo mesh, and moves its leaders. Its methods may be called at the same
// time.
type Mesh struct {
	options   Options
	endpoints []*replicas.Endpoint
	// page is how many Nodes one answer of the API server holds; pageSize, except in tests.
	page int64
	// one is held by the reader of all Nodes: one live read at a time is enough.
	one chan struct{}
	// last is the Prometheus that answered last; only the holder of one may touch it.
	last string
}

// New makes a Mesh, and sends no request. An error is a fault of the options.
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
		return nil, fmt.Errorf("making the Kilo provider: the timeout %s or the age %s of a result is too short", text.Duration(o.Timeout), text.Duration(o.MaxAge))
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
