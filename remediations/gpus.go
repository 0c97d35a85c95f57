package remediations

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// GPUsToKeep returns how many GPUs the machine had before its fault: the larger of the number in
// the node's label and the number in the intent. The intent counts only if it is about the same
// machine.
func (r *Record) GPUsToKeep(n *corev1.Node) int {
	count, _ := signs.ExpectedGPUs(n)
	if r != nil && r.Intent != nil && r.Intent.ProviderID == n.Spec.ProviderID {
		return max(count, r.Intent.GPUs)
	}
	return count
}

// LostGPUs returns how many GPUs the machine has now (count) and had before (had). seen is the
// number in the ledger, or zero. lost is false if no GPU is missing, or if the number is unknown.
func (r *Record) LostGPUs(n *corev1.Node, seen int) (count, had int, lost bool) {
	had = max(r.GPUsToKeep(n), seen)
	count, lost = signs.LostGPUs(n, had)
	return count, had, lost
}

// WellAgain reports whether the node of the exhausted repair is well again and its machine has lost
// no GPU.
func (r *Record) WellAgain(n *corev1.Node) bool {
	_, _, lost := r.LostGPUs(n, 0) // zero: the intent already has the ledger's number
	return !r.WellSince.IsZero() && !lost
}

// WithGPUsBefore returns the Node that is checked for signs of a fault. If the machine lost GPUs,
// it is a copy whose label has the number before the loss, so that the signs show the loss. seen is
// the number in the ledger, or zero.
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
