package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// The lab acts as the nodes' kubelets: it renews leases, and posts a status again if the Node shows
// another one. That happens if this machine was too slow to renew the lease, or if a post failed.
//
// KWOK could renew the leases, too, but four times in their duration and through the proxy. That
// was more than half of the cost of an idle lab with 80 nodes.
func (l *Lab) keepNodes() error {
	ctx, cancel := context.WithCancel(context.Background()) // not the caller's context, which the lab outlives
	l.mu.Lock()
	l.ends = append(l.ends, cancel)
	l.mu.Unlock()

	factory := informers.NewSharedInformerFactory(l.kubelet, 0)
	nodes := factory.Core().V1().Nodes().Informer()
	if err := nodes.SetTransform(onlyConditions); err != nil {
		return fmt.Errorf("keeping the nodes: %w", err)
	}
	// Errors of the watch are not logged, because a test may stop the API server at any time.
	if err := nodes.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return fmt.Errorf("keeping the nodes: %w", err)
	}
	// The handlers never run concurrently. If a node was replaced while the watch was broken, the
	// new node arrives as an update of the old one.
	kept := map[string]keptNode{}
	keep := func(object any) {
		node, ok := object.(*corev1.Node)
		if !ok || kept[node.Name].uid == node.UID {
			return
		}
		if before, ok := kept[node.Name]; ok {
			before.end()
		}
		ctx, end := context.WithCancel(ctx)
		kept[node.Name] = keptNode{node.UID, end}
		go l.keepNode(ctx, node, nodes.GetStore())
	}
	_, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    keep,
		UpdateFunc: func(_, object any) { keep(object) },
		DeleteFunc: func(object any) {
			name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
			if before, ok := kept[name]; ok && err == nil {
				before.end()
				delete(kept, name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("keeping the nodes: %w", err)
	}
	factory.StartWithContext(ctx)
	return nil
}

type keptNode struct {
	uid types.UID
	end context.CancelFunc
}

func onlyConditions(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Status:     corev1.NodeStatus{Conditions: node.Status.Conditions},
	}, nil
}

// A node that is broken or off does not renew. In a small fleet all nodes renew at the same
// moments, because one wake-up for eighty renewals costs half as much as eighty wake-ups. With
// thousands of nodes that would overload the API server.
func (l *Lab) keepNode(ctx context.Context, node *corev1.Node, seen cache.Store) {
	every, offset := l.options.renewEvery(), time.Duration(0)
	if len(l.options.NodeSpecs) > 100 {
		offset = time.Duration(rand.Int64N(int64(every)))
	}
	var lease *coordinationv1.Lease
	for {
		var err error
		if !l.isBroken(node.Name) {
			if lease, err = l.renewed(ctx, node, lease); err == nil {
				_ = l.sayAgain(ctx, node.Name, seen) // after an error, the next renewal tries again
			}
		}
		wait := every - (time.Since(l.began)+offset)%every
		if err != nil {
			wait = min(wait, every/8) // sooner: the API server was away, or another writer changed the lease
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// A status is posted only if the Node differs from what its kubelet would report.
func (l *Lab) sayAgain(ctx context.Context, name string, seen cache.Store) error {
	defer l.voice(name)()
	object, _, err := seen.GetByKey(name)
	node, ok := object.(*corev1.Node)
	if err != nil || !ok || l.isBroken(name) {
		return err
	}
	found := l.found(name, time.Now())
	otherwise := func(c corev1.NodeCondition) bool {
		return slices.ContainsFunc(node.Status.Conditions, func(s corev1.NodeCondition) bool { return s.Type == c.Type && s.Status != c.Status })
	}
	if !slices.ContainsFunc(found, otherwise) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.options.NodeGrace)
	defer cancel()
	return l.post(ctx, name, found, "")
}

// A nil lease is first read, and created if it is missing. The result is nil after an error.
func (l *Lab) renewed(ctx context.Context, node *corev1.Node, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.NodeGrace) // after NodeGrace, a renewal would be too late
	defer cancel()
	leases := l.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if lease == nil {
		live, err := leases.Get(ctx, node.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return leases.Create(ctx, l.leaseOf(node, &coordinationv1.Lease{}), metav1.CreateOptions{})
		case err != nil:
			return nil, err
		}
		lease = live
	}
	lease, err := leases.Update(ctx, l.leaseOf(node, lease), metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// The lease is as the node's kubelet would write it now.
func (l *Lab) leaseOf(node *corev1.Node, lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease.Name = node.Name
	// Empty managedFields make the API server store none. The lab does not read them on a lease,
	// and they are a large part of a renewal's cost.
	lease.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	// With this owner, Kubernetes deletes the lease together with its Node.
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	lease.Spec.HolderIdentity = &node.Name
	lease.Spec.LeaseDurationSeconds = new(l.options.leaseSeconds())
	lease.Spec.RenewTime = new(metav1.NowMicro())
	return lease
}
