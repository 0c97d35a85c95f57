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

// beatsGood is how long a count of the nodes' fresh leases may be used.
const beatsGood = 10 * time.Second

const (
	// leadYoung is how long after a change of leader the ledger is read at each poll. The earlier
	// leader may still take a slot with its last write.
	leadYoung = 2 * time.Minute
	// ledgerGood bounds the time between two reads of the ledger while no repair waits. For
	// example, a process that slept for hours may have written to it.
	ledgerGood = 10 * time.Minute
)

func (e *Engine) ledgerOld(led time.Time) bool {
	now := e.Clock.Now()
	return now.Sub(led) < leadYoung || now.Sub(e.ledgerRead) >= ledgerGood
}

// prefetchFor asks the provider while Alertmanager is being queried. It asks about only one machine
// at a time, because most nodes of a storm are never repaired.
func (p *pass) prefetchFor(s *lifecycle.State, r *remediations.Record, d lifecycle.Decision) {
	p.prefetchDue = p.prefetchDue || (d.Verb == lifecycle.VerbLook && (r == nil || !r.Phase.InFlight()))
	if d.AskStep != (remediations.StepOn{}) && !d.Ask.Survey && p.surveys == 0 {
		p.survey(s, d)
	}
}

// prefetch reads while Alertmanager is being queried, because the loop has no other work then.
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

// Expect reports that an alert is about to be written on a Node. It never blocks.
func (e *Engine) Expect() {
	select {
	case e.expected <- struct{}{}:
	default:
	}
}

// prefetchLeases lists the leases in another goroutine. In a large fleet that takes longer than all
// other work between an alert and its repair.
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

func (e *Engine) beatsOld() bool {
	return e.heartbeats == nil || e.Clock.Now().Sub(e.heartbeats.ReadAt) > beatsGood
}

// listed has few if a sample was enough. Otherwise it has all leases, or why they cannot be listed.
type listed struct {
	few    *signs.Heartbeats
	leases map[string]signs.Lease
	err    error
	at     time.Time
}

// sampleFor bounds the time for reading a sample. After that, all leases are listed.
const sampleFor = 2 * time.Second

// sample returns no nodes if all leases must be counted: in a small fleet, while the leases cannot
// be listed, and while too few are fresh to judge the fleet.
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

// counts skips leases of deleted Nodes, which may remain, and of excluded nodes, whose machines may
// be off on purpose.
func (e *Engine) counts(name string) bool {
	n := e.roster.Node(name)
	return n != nil && !remediations.Excluded(n)
}

// list must not run in the loop, because it is slow.
func (e *Engine) list(ctx context.Context, sample []string, fleet int) listed {
	if few := e.countSample(ctx, sample, fleet); few != nil {
		return listed{few: few, at: few.ReadAt}
	}
	leases, err := e.Fleet.Heartbeats(ctx)
	return listed{leases: leases, err: err, at: e.Clock.Now()}
}

// countSample returns nil if the sample is empty, cannot be read, or proves nothing.
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

func (e *Engine) prefetchedLeases() {
	select {
	case l := <-e.listing:
		e.listing = nil
		e.countLeases(l)
	default:
	}
}

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
