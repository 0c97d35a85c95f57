package remediations

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// GPUsToKeep returns how many GPUs the machine had before its fault. It is the larger of what an
// earlier attempt of the repair found and what the node's label says.
func (r *Record) GPUsToKeep(n *corev1.Node) int {
	count, _ := signs.ExpectedGPUs(n)
	if r != nil && r.Intent != nil && r.Intent.ProviderID == n.Spec.ProviderID {
		return max(count, r.Intent.GPUs)
	}
	return count
}

// LostGPUs returns how many GPUs the machine has now and how many it had, by the record or the
// ledger. seen is the number that the ledger has recorded; zero: none. lost is false if the machine
// has as many as before, or if their number is unknown.
func (r *Record) LostGPUs(n *corev1.Node, seen int) (count, had int, lost bool) {
	had = max(r.GPUsToKeep(n), seen)
	count, lost = signs.LostGPUs(n, had)
	return count, had, lost
}

// WellAgain reports whether the node of the exhausted repair was found well and its machine has all
// of its GPUs.
func (r *Record) WellAgain(n *corev1.Node) bool {
	_, _, lost := r.LostGPUs(n, 0) // the record's intent has the number of the ledger
	return !r.WellSince.IsZero() && !lost
}

// WithGPUsBefore returns the Node as a witness must see it. If the machine lost GPUs, the Node's
// label has the number that the machine had. Otherwise the Node is returned unchanged. seen is the
// most GPUs that the ledger has recorded; zero: none.
func WithGPUsBefore(n *corev1.Node, r *Record, seen int) *corev1.Node {
	if n == nil {
		return n
	}
	_, had, lost := r.LostGPUs(n, seen)
	if !lost {
		return n
	}
	as := *n
	as.Labels = maps.Clone(n.Labels)
	as.Labels[signs.GPUCountLabel] = strconv.Itoa(had)
	return &as
}
