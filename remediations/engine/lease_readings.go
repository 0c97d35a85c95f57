package engine

import (
	"sync"

	"drydock.dev/drydock/remediations/signs"
)

// leaseReadings are the last readings of leases that looked expired by this replica's clock. The
// next reading of such a lease shows whether the node still renews it. Witnesses are read beside
// the loop, so a lock protects the readings.
type leaseReadings struct {
	mu   sync.Mutex
	last map[string]signs.Lease
}

// mostReadings bounds the remembered readings. If that many leases look expired, Drydock is blind
// anyway.
const mostReadings = 1024

// follow adds to a reading of the node's lease what the previous reading showed.
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
