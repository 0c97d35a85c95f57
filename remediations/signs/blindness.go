package signs

import (
	"fmt"
	"time"
)

// Lease is one reading of a node's Lease object. The kubelet renews the Lease to show that the node
// is alive.
type Lease struct {
	// ReadAt is when the lease was read. RenewedAt is when the kubelet last renewed it.
	ReadAt, RenewedAt time.Time
	// Duration is how long a renewal is valid.
	Duration time.Duration
	// StoodFrom is when this process first read the current renewal time. MovedFrom is when this
	// process last read the previous renewal time. So the kubelet's last renewal came between
	// MovedFrom and StoodFrom. Both are times of this process's clock. MovedFrom is zero if this
	// process has never seen the renewal time change.
	StoodFrom, MovedFrom time.Time
	// Unread is why the lease could not be read. It is empty if the lease was read, or if the node has
	// no lease.
	Unread string
}

// After returns the lease l with the fields StoodFrom and MovedFrom. It compares l with was, an
// earlier reading of the same lease. The renewal time comes from the node's clock, which may be
// wrong. But a change of the renewal time always shows a renewal. Both readings must come from the
// API server's store, not from a cache.
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

// Heartbeats is a count of the nodes' leases: of all leases, or of a random sample that has hardly
// any stale lease. It helps to distinguish a broken connection to all nodes from broken nodes, and
// a wrong clock of Drydock from silent kubelets.
type Heartbeats struct {
	ReadAt       time.Time
	Nodes, Stale int
	// Fleet is the number of all nodes if only a sample was counted. It is zero if all leases were
	// counted.
	Fleet int
}

// If at least staleNodes leases are stale, and they are at least StalePercent of all leases, the
// fault is in the connection to the nodes and not in the nodes. These limits are those of
// gardener's dependency-watchdog.
const (
	staleNodes   = 3
	StalePercent = 60
	// leaseAhead is how far a kubelet's clock may be ahead of Drydock's clock. Beyond that, the
	// renewal time proves nothing.
	leaseAhead = time.Minute
)

// Count adds one lease to the count.
func (h *Heartbeats) Count(l Lease) {
	h.Nodes++
	if !l.Fresh() {
		h.Stale++
	}
}

// Blind returns why the leases show that Drydock cannot trust its view of the nodes, or an empty
// text.
func (h *Heartbeats) Blind() string {
	if h == nil || h.Stale < staleNodes || h.Stale*100 < h.Nodes*StalePercent {
		return ""
	}
	return fmt.Sprintf("%d of %d node leases are stale, so the connection to the nodes or Drydock's clock is at fault, and not the nodes", h.Stale, h.Nodes)
}

// Fresh reports whether the kubelet's last renewal was valid when the lease was read. There are two
// proofs: the renewal time is recent by Drydock's clock, or Drydock saw it change within the
// lease's duration. A renewal time far in the future is not a proof, because one of the two clocks
// is wrong.
func (l *Lease) Fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return (age <= l.Duration && age >= -leaseAhead) || l.ReadAt.Sub(l.MovedFrom) <= l.Duration
}

// Stands reports whether the kubelet has stopped renewing: the lease is not fresh, and Drydock has
// read the same renewal time for longer than the lease's duration.
func (l *Lease) Stands() bool {
	return !l.Fresh() && !l.StoodFrom.IsZero() && l.ReadAt.Sub(l.StoodFrom) > l.Duration
}
