// Package inspect reads Drydock's state with the caller's own rights: the status of the fleet, and
// why Drydock repairs a node or not. It makes the texts that the plugin's commands and its page
// share.
package inspect

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Client reads from the API server.
type Client struct {
	corev1client.CoreV1Interface
	coordinationv1client.LeasesGetter
	authorizationv1client.SelfSubjectAccessReviewsGetter
	// Clock is the API server's clock. It is nil if no API server is read.
	Clock   *Clock
	Cluster Cluster
}

// Reader reads with the rights of its client.
type Reader struct {
	Client
	Now func() time.Time
	// If Namespace is empty, the reader searches all namespaces for the ledger and the configuration.
	Namespace string
	// Ledger is the name of a ConfigMap. Lease is the name of the leader election's Lease.
	Ledger, Lease string
	// Known returns all Nodes, or false while they are not known yet. If Known is nil, the reader
	// lists the Nodes.
	Known func() ([]*corev1.Node, bool)
}

const nodesPerPage = 500

// EachNode calls do for each Node, page by page.
func (r *Reader) EachNode(ctx context.Context, o metav1.ListOptions, do func(*corev1.Node) error) error {
	if r.Known != nil && o == (metav1.ListOptions{}) {
		if all, known := r.Known(); known {
			for _, n := range all {
				if err := do(n); err != nil {
					return err
				}
			}
			return nil
		}
	}
	o.Limit = nodesPerPage
	for {
		page, err := r.Nodes().List(ctx, o)
		if err != nil {
			return Asking(err, "listing the nodes", "")
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}
