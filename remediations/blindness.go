package remediations

import (
	"errors"
	"fmt"
	"time"
)

// Heartbeats is a count of the nodes' leases, read all at once. It tells a broken control path from broken nodes, and
// a clock that is wrong here from kubelets that are silent there.
type Heartbeats struct {
	ReadAt       time.Time
	Nodes, Stale int
}

// From when many stale leases blame the control path and not the nodes: the measure of gardener's dependency-watchdog.
const (
	staleNodes   = 3
	stalePercent = 60
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
	if h == nil || h.Stale < staleNodes || h.Stale*100 < h.Nodes*stalePercent {
		return ""
	}
	return fmt.Sprintf("%d of %d node leases are stale, so the way to the nodes, or this clock, is at fault and not the nodes", h.Stale, h.Nodes)
}

// Fresh says that the kubelet's last renewal was good when the lease was read. One from far in the future says that one
// of the two clocks is wrong, and proves nothing.
func (l *Lease) Fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return age <= l.Duration && age >= -leaseAhead
}

// WithoutLedger says why nothing begins without the ledger; nil: it is read again at once.
func (s *State) WithoutLedger(now time.Time) (Reason, *Finding) {
	switch {
	case errors.Is(s.LedgerErr, ErrLedgerMalformed):
		return RecordMalformed, &Finding{Message: fmt.Sprintf("%v; mend it, or delete it and it is made anew from the Nodes", s.LedgerErr), Fleetwide: true}
	case Lost(s.LedgerLost, now):
		return Blind, &Finding{Message: LedgerLost(s.LedgerLost, s.LedgerErr), Fleetwide: true}
	}
	return "", nil
}

// LedgerLost is what people are told of a ledger that could be neither read nor saved for some time.
func LedgerLost(since time.Time, err error) string {
	return fmt.Sprintf("the ledger is out of reach since %s (%s); nothing begins without it", Instant(since).Format(time.RFC3339), clip(fmt.Sprint(err), 200))
}

// leasesLost holds what cannot begin because nobody can list the leases; nil: they are listed at once.
func (s *State) leasesLost(now time.Time) *Finding {
	if !Lost(s.LeasesLost, now) {
		return nil
	}
	return &Finding{Message: fmt.Sprintf("the nodes' leases cannot be listed since %s (%s); nothing begins without them", Instant(s.LeasesLost).Format(time.RFC3339), clip(fmt.Sprint(s.LeasesErr), 200)), Fleetwide: true}
}

// Lost says that what began to fail then has failed for long enough to hold repairs; a zero time: it does not fail.
func Lost(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= OutageFor }
