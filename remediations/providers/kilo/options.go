package kilo

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/replicas"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/providers/kilo/settings"
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

// Options configure a Mesh: the section of the configuration, and what it needs beside that.
type Options struct {
	settings.Kilo
	// API lists, reads and patches Nodes. Leases lists the kubelets' leases.
	API    NodeAPI
	Leases LeaseAPI
	// Nodes returns all Nodes from a cache. Only Leads and LeadsAll use it, and they only read. The
	// Nodes need only their labels, pod CIDR and Kilo's annotations.
	Nodes func(ctx context.Context) ([]*corev1.Node, error)
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
	urls := make([]string, len(o.Prometheus))
	for i, u := range o.Prometheus {
		urls[i] = u.String()
	}
	endpoints, err := replicas.New(replicas.Options{
		Of: "Prometheus", URLs: urls, HTTP: o.HTTPConfig, Most: maxReplicas, Timeout: o.Timeout, Lookup: o.Resolver, Judge: judge,
	})
	if err != nil {
		return nil, fmt.Errorf("making the Kilo provider (providers.kilo.prometheus, providers.kilo.httpConfig): %w", err)
	}
	return &Mesh{options: o, endpoints: endpoints, page: pageSize, one: make(chan struct{}, 1)}, nil
}
