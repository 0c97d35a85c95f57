package medik8s

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/remediations"
)

// Keeper renews Drydock's Leases while their nodes are under repair, and deletes them afterwards.
type Keeper struct {
	Leases
	// Registry has the repair steps of other programs. Records on Nodes may name them.
	Registry remediations.Registry
}

// Keep renews each of Drydock's Leases whose node is under repair, and deletes the others. It reads
// the Node after the Lease: Drydock writes its intent on the Node before it takes the Lease, so a
// Node without a repair means that the repair has ended. The error joins the errors of all Leases.
func (k Keeper) Keep(ctx context.Context) error {
	all, err := k.Client.CoordinationV1().Leases(Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the Leases in %s: %w", Namespace, err)
	}
	var out []error
	for i := range all.Items {
		if lease := &all.Items[i]; ptr.Deref(lease.Spec.HolderIdentity, "") == Holder {
			out = append(out, k.keep(ctx, lease))
		}
	}
	return errors.Join(out...)
}

func (k Keeper) keep(ctx context.Context, lease *coordinationv1.Lease) error {
	n, err := k.node(ctx, lease)
	if err != nil {
		return err
	}
	j := remediations.Journal{}
	if n != nil {
		j = k.Registry.ReadJournal(n)
	}
	r := j.Record
	// If the record is unreadable, or the repair is between two steps, the Lease stays unchanged.
	// It expires by itself, and the next step takes it again.
	left := j.Malformed != nil || r != nil && r.Phase == remediations.PhasePending && r.Intent != nil
	switch {
	case left:
		return nil
	case r != nil && r.Phase.InFlight():
		if k.young(lease) {
			return nil
		}
		k.fill(lease, n.Name, n.UID)
		err = k.update(ctx, lease)
	default:
		err = k.Client.CoordinationV1().Leases(Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
		})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another client was faster
	}
	if err != nil {
		return fmt.Errorf("renewing or deleting Lease %s/%s: %w", Namespace, lease.Name, err)
	}
	return nil
}

// node returns nil if the Node no longer exists. A new Node with the same name is not the owner.
func (k Keeper) node(ctx context.Context, lease *coordinationv1.Lease) (*corev1.Node, error) {
	for _, of := range lease.OwnerReferences {
		if of.Kind != "Node" {
			continue
		}
		n, err := k.Client.CoreV1().Nodes().Get(ctx, of.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && n.UID != of.UID:
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading Node %s of Drydock's Lease %s/%s: %w", of.Name, Namespace, lease.Name, err)
		}
		return n, nil
	}
	return nil, nil
}
