// Package medik8s makes sure that only one system at a time repairs a node: Drydock or Medik8s. It
// uses the Lease node-NAME in the namespace medik8s-leases. Medik8s' operators take this Lease
// before they repair, drain or maintain the node.
//
// A Lease has a holder until its renewTime plus leaseDurationSeconds. Before a disruptive step,
// after it has written its intent on the Node, Drydock takes the Lease if it has no holder. Keeper
// renews the Lease during the repair, and deletes it when the repair has ended. After a crash,
// Keeper recognises Drydock's Leases by their holder. If Keeper does not run, a Lease expires by
// itself.
package medik8s

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/remediations/engine"
)

const (
	// Namespace is the namespace of the Leases.
	Namespace = "medik8s-leases"
	// Holder is Drydock's holderIdentity in the Leases.
	Holder = "drydock"
	// Keeper renews a Lease when half of this time has passed.
	lasts = 10 * time.Minute
	// ahead is how far another holder's clock may be ahead. Medik8s ignores every Lease whose
	// renewTime is in the future.
	ahead = 10 * time.Second
)

// Leases reads and takes the Leases of nodes. It is safe for concurrent use.
type Leases struct {
	Client kubernetes.Interface
	Now    func() time.Time
}

func name(node string) string { return strings.ToLower("node-" + node) }

// until returns false if the Lease has ended, has no holder, or begins too far in the future. These
// are Medik8s' rules, with a tolerance for different clocks.
func (l Leases) until(lease *coordinationv1.Lease) (time.Time, bool) {
	s, now := lease.Spec, l.Now()
	if ptr.Deref(s.HolderIdentity, "") == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil || s.RenewTime.After(now.Add(ahead)) {
		return time.Time{}, false
	}
	end := s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)
	return end, !end.Before(now)
}

func (l Leases) others(lease *coordinationv1.Lease) error {
	end, held := l.until(lease)
	if !held || *lease.Spec.HolderIdentity == Holder {
		return nil
	}
	return fmt.Errorf("%w: %q holds Lease %s/%s until %s", engine.ErrTaken, *lease.Spec.HolderIdentity, Namespace, lease.Name, end.UTC().Format(time.RFC3339))
}

// Free implements engine.Reserver.
func (l Leases) Free(ctx context.Context, m engine.Machine, _ string) error {
	lease, err := l.get(ctx, m.Node)
	if err != nil || lease == nil {
		return err
	}
	return l.others(lease)
}

func (l Leases) get(ctx context.Context, node string) (*coordinationv1.Lease, error) {
	lease, err := l.Client.CoordinationV1().Leases(Namespace).Get(ctx, name(node), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Lease %s/%s, where Medik8s records who repairs the node: %w", Namespace, name(node), err)
	}
	return lease, nil
}

// Take implements engine.Reserver. It does nothing if the namespace medik8s-leases does not exist:
// then no other system uses Leases.
func (l Leases) Take(ctx context.Context, m engine.Machine, _ string) error {
	lease, err := l.get(ctx, m.Node)
	if err != nil {
		return err
	}
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name(m.Node), Namespace: Namespace}}
		l.fill(lease, m.Node, types.UID(m.UID))
		_, err = l.Client.CoordinationV1().Leases(Namespace).Create(ctx, lease, metav1.CreateOptions{FieldManager: Holder})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return taking(lease, err)
	}
	if err := l.others(lease); err != nil {
		return err
	}
	if l.young(lease) && string(owner(lease)) == m.UID {
		return nil
	}
	l.fill(lease, m.Node, types.UID(m.UID))
	return taking(lease, l.update(ctx, lease))
}

func (l Leases) young(lease *coordinationv1.Lease) bool {
	end, held := l.until(lease)
	return held && *lease.Spec.HolderIdentity == Holder && end.Sub(l.Now()) > lasts/2
}

// The API server refuses the write if another client has changed the Lease since it was read.
func (l Leases) update(ctx context.Context, lease *coordinationv1.Lease) error {
	_, err := l.Client.CoordinationV1().Leases(Namespace).Update(ctx, lease, metav1.UpdateOptions{FieldManager: Holder})
	return err
}

func taking(lease *coordinationv1.Lease, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return fmt.Errorf("%w: another holder has just taken Lease %s/%s", engine.ErrTaken, Namespace, lease.Name)
	}
	return fmt.Errorf("taking Lease %s/%s, where Medik8s records who repairs the node: %w", Namespace, lease.Name, err)
}

// fill makes the Node the owner of the Lease, so that Kubernetes deletes both together.
func (l Leases) fill(lease *coordinationv1.Lease, node string, uid types.UID) {
	now := metav1.NewMicroTime(l.Now())
	if _, held := l.until(lease); !held || owner(lease) != uid {
		if lease.Spec.HolderIdentity != nil {
			lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		}
		lease.Spec.AcquireTime = &now
	}
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: uid}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To(Holder), ptr.To(int32(lasts.Seconds())), &now
}

func owner(lease *coordinationv1.Lease) types.UID {
	for _, of := range lease.OwnerReferences {
		if of.Kind == "Node" {
			return of.UID
		}
	}
	return ""
}
