package signs

import (
	"fmt"
	"time"
)

// Lease is a node's heartbeat.
type Lease struct {
	// ReadAt is when the lease was read. RenewedAt is when the kubelet last renewed it.
	ReadAt, RenewedAt time.Time
	// Duration is how long a renewal is valid.
	Duration time.Duration
	// StoodFrom is when this process first read the current renewal time. MovedFrom is when it last
	// read the one before it, so the kubelet renewed the lease after MovedFrom. Both are times of
	// this process's clock. MovedFrom is zero if this process has never seen the renewal time
	// change.
	StoodFrom, MovedFrom time.Time
	// Unread is why the lease could not be read; empty: it was read, or the node has none.
	Unread string
}

// After adds what an earlier reading of the same lease shows. The kubelet stamps its lease with the
// node's own clock, which may be wrong. Whether the lease moves does not depend on that clock. Both
// readings must come from the API server's store, not from a cache.
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

// Heartbeats is a count of the nodes' leases: all of them, or a random sample with hardly a stale
// lease. It distinguishes a broken control path from broken nodes, and a wrong clock here from
// silent kubelets there.
type Heartbeats struct {
	ReadAt       time.Time
	Nodes, Stale int
	// Fleet is the number of all nodes if only a sample was counted; zero: all leases were counted.
	Fleet int
}

// With at least so many stale leases, the control path is at fault and not the nodes. The limits
// are those of gardener's dependency-watchdog.
const (
	staleNodes   = 3
	StalePercent = 60
	// leaseAhead is how far a kubelet's clock may be ahead of this one before its lease proves
	// nothing.
	leaseAhead = time.Minute
)

// Count adds one lease to the count.
func (h *Heartbeats) Count(l Lease) {
	h.Nodes++
	if !l.Fresh() {
		h.Stale++
	}
}

// Blind returns why the leases make Drydock distrust its view of the nodes; empty: they do not.
func (h *Heartbeats) Blind() string {
	if h == nil || h.Stale < staleNodes || h.Stale*100 < h.Nodes*StalePercent {
		return ""
	}
	return fmt.Sprintf("%d of %d node leases are stale, so the way to the nodes, or this clock, is at fault and not the nodes", h.Stale, h.Nodes)
}

// Fresh reports whether the kubelet's last renewal was valid when the lease was read: by this
// clock, or because the lease moved within its duration. A renewal from far in the future shows
// that one of the two clocks is wrong, and proves nothing by itself.
func (l *Lease) Fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return (age <= l.Duration && age >= -leaseAhead) || l.ReadAt.Sub(l.MovedFrom) <= l.Duration
}

// Stands reports whether the lease is not fresh, and the same renewal was read for longer than its
// duration.
func (l *Lease) Stands() bool {
	return !l.Fresh() && !l.StoodFrom.IsZero() && l.ReadAt.Sub(l.StoodFrom) > l.Duration
}
