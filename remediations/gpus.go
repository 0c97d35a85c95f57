package remediations

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// GPUsToKeep is how many GPUs the machine had before its fault: as many as an earlier attempt of the repair found, or as its label says.
func (r *Record) GPUsToKeep(n *corev1.Node) int {
	count, _ := signs.ExpectedGPUs(n)
	if r != nil && r.Intent != nil && r.Intent.ProviderID == n.Spec.ProviderID {
		return max(count, r.Intent.GPUs)
	}
	return count
}

// LostGPUs says how many GPUs the machine has now, and how many it had: by the record, or by the ledger, which has seen that many; zero: it
// has seen none. lost is false if the machine has as many as before, or nothing says how many it has.
func (r *Record) LostGPUs(n *corev1.Node, seen int) (count, had int, lost bool) {
	had = max(r.GPUsToKeep(n), seen)
	count, lost = signs.LostGPUs(n, had)
	return count, had, lost
}

// WellAgain says that the node of the exhausted repair was found well, and that its machine has all of its GPUs.
func (r *Record) WellAgain(n *corev1.Node) bool {
	_, _, lost := r.LostGPUs(n, 0) // its intent has what the ledger has seen
	return !r.WellSince.IsZero() && !lost
}

// WithGPUsBefore is the Node as a witness must see it: if its machine lost GPUs, its label says as many as the machine had. Otherwise it
// is the Node itself. seen is the most GPUs that the ledger has seen; zero: none.
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
