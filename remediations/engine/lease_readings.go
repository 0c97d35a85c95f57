package engine

import (
	"sync"

	"drydock.dev/drydock/remediations/signs"
)

// leaseReadings are the last readings of leases that are not fresh by this clock. The next reading
// of such a lease shows whether the lease is still renewed. Witnesses are read beside the loop, so
// the readings have a lock.
type leaseReadings struct {
	mu   sync.Mutex
	last map[string]signs.Lease
}

// mostReadings bounds the remembered readings. If that many nodes have a lease that is not fresh,
// Drydock is blind.
const mostReadings = 1024

// follow adds to a reading what the previous reading shows.
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
