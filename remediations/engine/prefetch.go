package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// beatsGood is how long a count of the nodes' fresh leases may be used. After that, a decision
// requests a new count.
const beatsGood = 10 * time.Second

const (
	// leadYoung is how long after a change of leader the ledger is read at each poll. The earlier
	// leader may still finish its last write in that time. Without these reads, this process would
	// not see a slot that the earlier leader took at the last moment.
	leadYoung = 2 * time.Minute
	// ledgerGood is the longest time between two reads of the ledger while no repair waits. Each
	// read lets this process correct what people see in the ledger. For example, a process that
	// slept for hours may have written to it.
	ledgerGood = 10 * time.Minute
)

// ledgerOld reports whether the ledger must be read although no decision needs it. led is when this
// process became the leader.
func (e *Engine) ledgerOld(led time.Time) bool {
	now := e.Clock.Now()
	return now.Sub(led) < leadYoung || now.Sub(e.ledgerRead) >= ledgerGood
}

// prefetchFor prepares a decision while Alertmanager is being queried: it already asks the provider
// about the node's machine. It asks about only one machine at a time, because most nodes of a storm
// are never repaired.
func (p *pass) prefetchFor(s *lifecycle.State, r *remediations.Record, d lifecycle.Decision) {
	p.prefetchDue = p.prefetchDue || (d.Verb == lifecycle.VerbLook && (r == nil || !r.Phase.InFlight()))
	if d.AskStep != (remediations.StepOn{}) && !d.Ask.Survey && p.surveys == 0 {
		p.survey(s, d)
	}
}

// prefetch reads the leases and the ledger while Alertmanager is being queried, because the loop
// has no other work until Alertmanager answers. It reads the ledger only if the copy in memory is
// older than one poll interval.
func (e *Engine) prefetch(ctx context.Context) {
	if !e.prefetchDue || !e.looking || ctx.Err() != nil {
		return
	}
	e.prefetchDue = false
	e.prefetchLeases(ctx)
	if e.ledger != nil && e.Clock.Now().Sub(e.ledgerRead) >= e.PollInterval {
		e.loadLedger(ctx)
	}
}

// Expect reports that an alert is about to be written on a Node. The loop then reads the leases
// while the alert is being written. Expect never blocks.
func (e *Engine) Expect() {
	select {
	case e.expected <- struct{}{}:
	default:
	}
}

// prefetchLeases lists the leases in another goroutine, if the present count of them is too old for
// a decision. In a large fleet, this list takes longer than all other work between an alert and its
// repair.
func (e *Engine) prefetchLeases(ctx context.Context) {
	if e.listing != nil || !e.leasesOut.due(e.Clock.Now()) || !e.beatsOld() {
		return
	}
	listing := make(chan listed, 1)
	e.listing = listing
	failing := !e.leasesOut.since.IsZero()
	sample, fleet := e.sample()
	e.Beside(func() {
		listing <- e.list(ctx, sample, fleet)
		if failing {
			e.enqueue(func() {}) // wake the loop, which did not wait for this list
		}
	})
}

// beatsOld reports whether the count of the leases is too old for a decision.
func (e *Engine) beatsOld() bool {
	return e.heartbeats == nil || e.Clock.Now().Sub(e.heartbeats.ReadAt) > beatsGood
}

// listed is the result of reading leases. If a sample was enough, few is the count of the sample.
// Otherwise leases has all leases by node, or err is why they cannot be listed.
type listed struct {
	few    *signs.Heartbeats
	leases map[string]signs.Lease
	err    error
	at     time.Time
}

// sampleFor bounds the time for reading a sample. After that, all leases are listed, with a time
// limit of their own.
const sampleFor = 2 * time.Second

// sample returns the nodes whose leases are read in place of all leases, and the size of the fleet.
// It returns no nodes if all leases must be counted: in a small fleet, while the leases cannot be
// listed, and while Drydock is blind.
func (e *Engine) sample() (nodes []string, fleet int) {
	if !e.leasesOut.since.IsZero() || e.heartbeats.Blind() != "" {
		return nil, 0
	}
	names := slices.DeleteFunc(slices.Clone(e.roster.Names()), func(name string) bool { return !e.counts(name) })
	for _, i := range e.core.sampling.Sample(len(names), e.Below) {
		nodes = append(nodes, names[i])
	}
	return nodes, len(names)
}

// counts reports whether the lease with this name counts: its Node must exist and must not be
// excluded. Leases of deleted Nodes may remain, and the leases of excluded nodes may be stale
// because their machines are off on purpose.
func (e *Engine) counts(name string) bool {
	n := e.roster.Node(name)
	return n != nil && !remediations.Excluded(n)
}

// list reads the leases of the sample. If the sample is empty or proves nothing, it reads all
// leases. It must not run in the loop's goroutine, because it is slow.
func (e *Engine) list(ctx context.Context, sample []string, fleet int) listed {
	if few := e.countSample(ctx, sample, fleet); few != nil {
		return listed{few: few, at: few.ReadAt}
	}
	leases, err := e.Fleet.Heartbeats(ctx)
	return listed{leases: leases, err: err, at: e.Clock.Now()}
}

// countSample counts the leases of the sample. It returns nil if the sample is empty, cannot be
// read, or proves nothing.
func (e *Engine) countSample(ctx context.Context, sample []string, fleet int) *signs.Heartbeats {
	if len(sample) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sampleFor)
	defer cancel()
	leases, err := e.Fleet.Leases(ctx, sample)
	if err != nil {
		e.Log.Info("the sample of the nodes' leases cannot be read; all leases are listed", "err", err.Error())
		return nil
	}
	few := e.core.sampling.Count(sample, leases, fleet)
	if few != nil {
		few.ReadAt = e.Clock.Now()
	}
	return few
}

// prefetchedLeases counts the leases that prefetchLeases requested, if they have arrived. It does
// not wait for them.
func (e *Engine) prefetchedLeases() {
	select {
	case l := <-e.listing:
		e.listing = nil
		e.countLeases(l)
	default:
	}
}

// countLeases counts the leases that were read, and how many of them are fresh. Decisions use this
// count. If the leases could not be read, the next try waits.
func (e *Engine) countLeases(l listed) {
	if l.err == nil {
		e.metrics.answered(sourceLeases, l.at)
	}
	if l.few != nil {
		e.heartbeats = l.few
		return
	}
	h, known := &signs.Heartbeats{ReadAt: l.at}, false
	for node, lease := range l.leases {
		if e.counts(node) {
			h.Count(lease)
		}
		known = known || e.roster.Node(node) != nil
	}
	if l.err == nil && !known {
		l.err = errors.New("no Node has a lease")
	}
	if l.err != nil {
		e.Log.Error(l.err, "the nodes' leases cannot be listed; no step begins without them")
		e.leasesOut.failed(e.Clock.Now(), l.err, outageLongest)
		return
	}
	e.leasesOut.over()
	e.heartbeats = h
}
