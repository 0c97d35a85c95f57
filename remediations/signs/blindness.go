package signs

import (
	"fmt"
	"time"
)

// Lease is a node's heartbeat.
type Lease struct {
	// ReadAt is when it was read, RenewedAt when the kubelet last renewed it.
	ReadAt, RenewedAt time.Time
	// Duration is how long a renewal is good for.
	Duration time.Duration
	// StoodFrom is when this renewal was read first. MovedFrom is when the renewal before it was read last: the kubelet has renewed the
	// lease since. Both are times of the clock that reads; zero: no earlier reading says so.
	StoodFrom, MovedFrom time.Time
	// Unread is why the lease could not be read; empty: it was read, or the node has none.
	Unread string
}

// After adds what an earlier reading of the same lease shows. The kubelet stamps its lease with the node's own clock, which may be
// wrong; whether the lease moves does not depend on that. Both readings must come from the API server's store, not from a cache.
func (l Lease) After(was Lease) Lease {
	switch {
	case was.ReadAt.IsZero():
		l.StoodFrom = l.ReadAt
	case l.RenewedAt.Equal(was.RenewedAt):
		l.StoodFrom, l.MovedFrom = was.StoodFrom, was.MovedFrom
	default:
		l.StoodFrom, l.MovedFrom = l.ReadAt, was.ReadAt
	}
	return l
}

// Heartbeats is a count of the nodes' leases: of all of them, or of a random sample that has hardly a stale one. It tells a
// broken control path from broken nodes, and a clock that is wrong here from kubelets that are silent there.
type Heartbeats struct {
	ReadAt       time.Time
	Nodes, Stale int
	// Fleet is the number of all nodes where those counted are a sample of them; zero: all leases were counted.
	Fleet int
}

// From when many stale leases blame the control path and not the nodes: the measure of gardener's dependency-watchdog.
const (
	staleNodes   = 3
	StalePercent = 60
	// leaseAhead is how far a kubelet's clock may be ahead of ours before its lease says nothing.
	leaseAhead = time.Minute
)

// Count takes in one lease.
func (h *Heartbeats) Count(l Lease) {
	h.Nodes++
	if !l.Fresh() {
		h.Stale++
	}
}

// Blind says why the leases make Drydock trust nothing; empty: they do not.
func (h *Heartbeats) Blind() string {
	if h == nil || h.Stale < staleNodes || h.Stale*100 < h.Nodes*StalePercent {
		return ""
	}
	return fmt.Sprintf("%d of %d node leases are stale, so the way to the nodes, or this clock, is at fault and not the nodes", h.Stale, h.Nodes)
}

// Fresh says that the kubelet's last renewal was good when the lease was read: by this clock, or because the lease moved within
// its time. A renewal from far in the future says that one of the two clocks is wrong, and alone proves nothing.
func (l *Lease) Fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return (age <= l.Duration && age >= -leaseAhead) || (!l.MovedFrom.IsZero() && l.ReadAt.Sub(l.MovedFrom) <= l.Duration)
}

// Stands says that the lease is not fresh, and that the same renewal was read for longer than its time.
func (l *Lease) Stands() bool {
	return !l.Fresh() && !l.StoodFrom.IsZero() && l.ReadAt.Sub(l.StoodFrom) > l.Duration
}
