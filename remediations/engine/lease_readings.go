package engine

import (
	"sync"

	"drydock.dev/drydock/remediations/signs"
)

// leaseReadings are the last readings of leases that looked expired by this replica's clock. The
// next reading shows whether the node still renews its lease.
type leaseReadings struct {
	mu   sync.Mutex
	last map[string]signs.Lease
}

// mostReadings is high enough: if that many leases look expired, Drydock repairs nothing at all.
const mostReadings = 1024

// follow compares with the previous reading, to see whether the node renewed its lease since.
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
