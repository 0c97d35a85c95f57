package remediations

import (
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
	if !l.fresh() {
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
