// Package kube connects Drydock to the API server. It has the cache of trimmed Nodes, the writes on
// Nodes, and the store of the ledger.
package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unique"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

// Fleet reads the cluster's Nodes from an informer's cache, and their leases from the API server.
// It implements engine.Fleet.
type Fleet struct {
	Client  kubernetes.Interface
	Indexer cache.Indexer
	// Nil if changes are not collected.
	Changes *Changes
	Now     func() time.Time
	// The keys of other systems' annotations that Trim does not remove from the cached Nodes.
	Keep []string
}

var _ engine.Fleet = Fleet{}

// Nodes returns all Nodes in the cache. The objects are shared, so the caller must not change them.
func (f Fleet) Nodes(context.Context) ([]*corev1.Node, error) {
	objs := f.Indexer.List()
	nodes := make([]*corev1.Node, 0, len(objs))
	for _, o := range objs {
		n, ok := o.(*corev1.Node)
		if !ok {
			return nil, fmt.Errorf("the cache of Nodes holds a %T", o)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// Cached returns the Node from the cache, or nil.
func (f Fleet) Cached(name string) *corev1.Node {
	o, ok, err := f.Indexer.GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	n, _ := o.(*corev1.Node)
	return n
}

// Node reads one Node from the API server.
func (f Fleet) Node(ctx context.Context, name string) (*corev1.Node, error) {
	n, err := f.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, translate("reading Node "+name, err)
	}
	return Trim(n, f.Keep...), nil
}

// Lease returns when the kubelet last renewed the node's lease, and for how long a renewal is
// valid.
func (f Fleet) Lease(ctx context.Context, node string) (time.Time, time.Duration, error) {
	l, err := f.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, 0, translate("reading the lease of Node "+node, err)
	}
	lease, ok := leaseOf(l, f.Now())
	if !ok {
		return time.Time{}, 0, fmt.Errorf("the lease of Node %s has no renewTime or no leaseDurationSeconds", node)
	}
	return lease.RenewedAt, lease.Duration, nil
}

// leaseOf returns false if the Lease has no renewTime or no leaseDurationSeconds.
func leaseOf(l *coordinationv1.Lease, readAt time.Time) (signs.Lease, bool) {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return signs.Lease{}, false
	}
	return signs.Lease{ReadAt: readAt, RenewedAt: l.Spec.RenewTime.Time, Duration: time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second}, true
}

// Leases reads the leases of these nodes concurrently, from the API server's own cache. Nodes
// without a lease are left out.
func (f Fleet) Leases(ctx context.Context, nodes []string) (map[string]signs.Lease, error) {
	all := make([]*coordinationv1.Lease, len(nodes))
	g, ctx := errgroup.WithContext(ctx)
	for i, node := range nodes {
		g.Go(func() error {
			l, err := f.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{ResourceVersion: "0"})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return translate("reading the lease of Node "+node, err)
			}
			all[i] = l
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	readAt := f.Now()
	out := make(map[string]signs.Lease, len(nodes))
	for i, l := range all {
		if l == nil {
			continue
		}
		if lease, ok := leaseOf(l, readAt); ok {
			out[nodes[i]] = lease
		}
	}
	return out, nil
}

// Heartbeats reads the leases of all nodes from the API server's own cache. This costs the API
// server almost nothing, and is recent enough to count the healthy nodes.
func (f Fleet) Heartbeats(ctx context.Context) (map[string]signs.Lease, error) {
	all, err := f.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, translate("listing the nodes' leases", err)
	}
	readAt := f.Now()
	out := make(map[string]signs.Lease, len(all.Items))
	for i := range all.Items {
		if lease, ok := leaseOf(&all.Items[i], readAt); ok {
			out[all.Items[i].Name] = lease
		}
	}
	return out, nil
}

// Trim returns a copy of the Node with only the fields that decisions use. A real Node takes tens
// of kilobytes, mostly images, managed fields and annotations of other systems. Of those
// annotations, it keeps maxKept bytes of each in keep.
func Trim(n *corev1.Node, keep ...string) *corev1.Node {
	t := &corev1.Node{
		TypeMeta: n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels,
			CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{ProviderID: n.Spec.ProviderID, Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints, PodCIDR: n.Spec.PodCIDR},
	}
	annotate := func(k, v string) {
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[k] = v
	}
	for k, v := range n.Annotations {
		if remediations.Relevant(k) || ofMesh(k) {
			annotate(k, v)
		}
	}
	for _, k := range keep {
		if v, ok := n.Annotations[k]; ok {
			annotate(k, v[:min(len(v), maxKept)])
		}
	}
	t.Status.Conditions, t.Status.Allocatable = conditionsOf(n), signs.Offered(n)
	t.Status.NodeInfo.BootID, t.Status.NodeInfo.SystemUUID = n.Status.NodeInfo.BootID, n.Status.NodeInfo.SystemUUID
	return t
}

// In bytes, longer than any value that a configuration compares.
const maxKept = 256

// A real node has fewer, but a hostile kubelet may write any number.
const maxConditions = 64

// Most types and texts are the same on every node, so each text is stored only once. Reason and
// message of Ready are left out, and long messages are cut.
func conditionsOf(n *corev1.Node) []corev1.NodeCondition {
	var out []corev1.NodeCondition
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady && len(out) >= maxConditions {
			continue
		}
		out = append(out, corev1.NodeCondition{
			Type: corev1.NodeConditionType(unique.Make(string(c.Type)).Value()), Status: corev1.ConditionStatus(unique.Make(string(c.Status)).Value()),
			LastTransitionTime: c.LastTransitionTime, LastHeartbeatTime: c.LastHeartbeatTime, Reason: shared(c, c.Reason), Message: shared(c, c.Message),
		})
	}
	return out
}

// shared returns an empty text for Ready: no policy reads its texts, and its message may change
// with each heartbeat.
func shared(c corev1.NodeCondition, text string) string {
	if c.Type == corev1.NodeReady {
		return ""
	}
	return unique.Make(text[:min(len(text), maxText)]).Value()
}

// In bytes. NVSentinel writes texts of up to 1,024 bytes.
const maxText = 1 << 10

// Matters reports whether a change of a Node could change a decision. A heartbeat of the kubelet or
// of Kilo's agent could not.
func Matters(a, b *corev1.Node) bool {
	return !signs.Same(a, b) || !sameButSeen(a.Annotations, b.Annotations)
}

// The object was replaced under the same name: the API server then answers that the UID cannot be
// changed.
func otherUID(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// translate returns ErrNotFound, ErrConflict, or the same error. doing says which call failed.
func translate(doing string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", doing, engine.ErrNotFound)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), otherUID(err):
		return fmt.Errorf("%s: %w", doing, engine.ErrConflict)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
