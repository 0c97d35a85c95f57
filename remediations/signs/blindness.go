package signs

import (
	"fmt"
	"time"
)

// Lease is one reading of a node's Lease, which the kubelet renews to show that the node is alive.
type Lease struct {
	// RenewedAt is when the kubelet last renewed the lease.
	ReadAt, RenewedAt time.Time
	Duration          time.Duration
	// By this process's clock: when it first read the current renewal time, and when it last read
	// the previous one. The kubelet's last renewal came between the two. MovedFrom is zero if the
	// renewal time was never seen to change.
	StoodFrom, MovedFrom time.Time
	// Why the lease could not be read. Empty if it was read, or if the node has no lease.
	Unread string
}

// After returns l with the fields StoodFrom and MovedFrom, by comparison with an earlier reading of
// the same lease. The renewal time comes from the node's clock, which may be wrong, but its change
// always shows a renewal. Both readings must come from the API server's store, not from a cache.
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

// Heartbeats is a count of the nodes' leases: of all, or of a random sample that has hardly any
// stale lease. It distinguishes a broken connection to all nodes from broken nodes, and a wrong
// clock of Drydock from silent kubelets.
type Heartbeats struct {
	ReadAt       time.Time
	Nodes, Stale int
	// The number of all nodes if only a sample was counted, otherwise zero.
	Fleet int
}

// If at least staleNodes leases are stale, and they are at least StalePercent of all leases, the
// fault is in the connection to the nodes and not in the nodes. These limits are those of
// gardener's dependency-watchdog.
const (
	staleNodes   = 3
	StalePercent = 60
	// A renewal time further ahead of Drydock's clock proves nothing.
	leaseAhead = time.Minute
)

// Count adds one lease to the count.
func (h *Heartbeats) Count(l Lease) {
	h.Nodes++
	if !l.Fresh() {
		h.Stale++
	}
}

// Blind returns why the leases show that the view of the nodes cannot be trusted, or "".
func (h *Heartbeats) Blind() string {
	if h == nil || h.Stale < staleNodes || h.Stale*100 < h.Nodes*StalePercent {
		return ""
	}
	return fmt.Sprintf("%d of %d node leases are stale, so the connection to the nodes or Drydock's clock is at fault, and not the nodes", h.Stale, h.Nodes)
}

// Fresh reports whether the kubelet's last renewal was valid when the lease was read: the renewal
// time is recent by Drydock's clock, or was seen to change within the lease's duration. A renewal
// time far in the future proves nothing, because one of the two clocks is wrong.
func (l *Lease) Fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return (age <= l.Duration && age >= -leaseAhead) || l.ReadAt.Sub(l.MovedFrom) <= l.Duration
}

// Stands reports whether the kubelet has stopped renewing: the lease is not fresh, and the same
// renewal time has been read for longer than the lease's duration.
func (l *Lease) Stands() bool {
	return !l.Fresh() && !l.StoodFrom.IsZero() && l.ReadAt.Sub(l.StoodFrom) > l.Duration
}
