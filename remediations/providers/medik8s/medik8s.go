// Package medik8s shares with Medik8s which repair system repairs a node: by the Lease node-NAME in the namespace medik8s-leases, which
// its operators take before they repair, drain or maintain the node.
//
// A Lease is somebody's while it is not over: its renewTime and leaseDurationSeconds say until when. Drydock takes one that is nobody's
// right before a disruptive step, when the intent is on record. Keeper renews it while that record is in flight, and deletes it when the
// repair is over, also one that a crash has left: the Leases themselves say which are Drydock's. Without Keeper it ends by itself.
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
	// Namespace is where the Leases are.
	Namespace = "medik8s-leases"
	// Holder is Drydock's identity in them.
	Holder = "drydock"
	// lasts is how long a Lease is Drydock's when nobody renews it; it is renewed in the second half of that.
	lasts = 10 * time.Minute
	// ahead is how far the clock of who renewed a Lease may be ahead of ours: Medik8s takes one from the future for none.
	ahead = 10 * time.Second
)

// Leases are those of all nodes. It is safe for concurrent use.
type Leases struct {
	Client kubernetes.Interface
	Now    func() time.Time
}

// name is that of the node's Lease.
func name(node string) string { return strings.ToLower("node-" + node) }

// until is when the Lease ends, as Medik8s counts, but for clocks that are apart; false: it is over, or none.
func (l Leases) until(lease *coordinationv1.Lease) (time.Time, bool) {
	s, now := lease.Spec, l.Now()
	if ptr.Deref(s.HolderIdentity, "") == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil || s.RenewTime.After(now.Add(ahead)) {
		return time.Time{}, false
	}
	end := s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)
	return end, !end.Before(now)
}

// others is the error that names who else has the Lease; nil: nobody.
func (l Leases) others(lease *coordinationv1.Lease) error {
	end, held := l.until(lease)
	if !held || *lease.Spec.HolderIdentity == Holder {
		return nil
	}
	return fmt.Errorf("%w: %q holds Lease %s/%s until %s", engine.ErrTaken, *lease.Spec.HolderIdentity, Namespace, lease.Name, end.UTC().Format(time.RFC3339))
}

// Free is engine.Reserver's.
func (l Leases) Free(ctx context.Context, m engine.Machine, _ string) error {
	lease, err := l.get(ctx, m.Node)
	if err != nil || lease == nil {
		return err
	}
	return l.others(lease)
}

// get is the node's Lease; nil: there is none.
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

// Take is engine.Reserver's. Where the namespace does not exist there is nobody to share with.
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

// young says that the Lease is Drydock's, and in the first half of its time.
func (l Leases) young(lease *coordinationv1.Lease) bool {
	end, held := l.until(lease)
	return held && *lease.Spec.HolderIdentity == Holder && end.Sub(l.Now()) > lasts/2
}

// update renews the Lease as it was read: one that somebody changed since is left alone.
func (l Leases) update(ctx context.Context, lease *coordinationv1.Lease) error {
	_, err := l.Client.CoordinationV1().Leases(Namespace).Update(ctx, lease, metav1.UpdateOptions{FieldManager: Holder})
	return err
}

func taking(lease *coordinationv1.Lease, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return fmt.Errorf("%w: another holder took Lease %s/%s this very moment", engine.ErrTaken, Namespace, lease.Name)
	}
	return fmt.Errorf("taking Lease %s/%s, where Medik8s records who repairs the node: %w", Namespace, lease.Name, err)
}

// fill makes the Lease Drydock's from now on. It goes with its Node.
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

// owner is the UID of the Node whose Lease it is; empty: it does not say.
func owner(lease *coordinationv1.Lease) types.UID {
	for _, of := range lease.OwnerReferences {
		if of.Kind == "Node" {
			return of.UID
		}
	}
	return ""
}
