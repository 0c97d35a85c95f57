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

// NodeAPI and LeaseAPI are the methods of client-go that this package calls.
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

// Options configure a Mesh: the section providers.kilo of the configuration, and clients and
// functions of the program.
type Options struct {
	settings.Kilo
	// Leases has the kubelets' leases.
	API    NodeAPI
	Leases LeaseAPI
	// Nodes returns all Nodes from a cache, with their labels, pod CIDRs and Kilo's annotations.
	// Only Leads and LeadsAll use it, and they change nothing.
	Nodes func(ctx context.Context) ([]*corev1.Node, error)
	// HoldWhen lists the marks of other systems on a node that they claim. A claimed node does not
	// become a leader. The default is the list that Drydock ships.
	HoldWhen marks.List
	// Registry has the repair steps of other programs. Records on Nodes may name them.
	Registry remediations.Registry
	// Resolver returns the addresses of a host name. The default is net.DefaultResolver.
	Resolver func(ctx context.Context, host string) ([]string, error)
	// Now is for the age of agents' annotations and of leases.
	Now func() time.Time
}

// Mesh observes a cluster's Kilo mesh and moves its leaders. It is safe for concurrent use.
type Mesh struct {
	options   Options
	endpoints []*replicas.Endpoint
	// page is pageSize, except in tests.
	page int64
	// Only one Look, Move or PutBack runs at a time, because each reads all Nodes.
	one chan struct{}
	// last is the address of the Prometheus that answered last. The lock one guards it.
	last string
}

// New checks the options. It sends no request.
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
