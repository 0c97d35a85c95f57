package engine

import (
	"sync"

	"drydock.dev/drydock/remediations/signs"
)

// leaseReadings are the last readings of leases that looked expired by this replica's clock. The
// next reading of such a lease shows whether the node still renews it. Other goroutines read leases
// as well, so a lock protects the readings.
type leaseReadings struct {
	mu   sync.Mutex
	last map[string]signs.Lease
}

// mostReadings bounds the remembered readings. If that many leases look expired, Drydock counts as
// blind and repairs no node.
const mostReadings = 1024

// follow compares a reading of the node's lease with the previous reading. It returns the new
// reading, which then shows whether the node has renewed the lease between the two.
func (r *leaseReadings) follow(node string, l signs.Lease) signs.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.last[node]
	if !known && l.Fresh() {
		return l
	}
	if Torn(was.ReadAt, l.ReadAt) {
		was = signs.Lease{}
	}
	l = l.After(was)
	if r.last == nil || (!known && len(r.last) >= mostReadings) {
		r.last = map[string]signs.Lease{}
	}
	r.last[node] = l
	return l
}
