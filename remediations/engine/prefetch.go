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

// beatsGood is how long a count of the leases is used. After that, Decide requests a new one.
const beatsGood = 10 * time.Second

const (
	// leadYoung is how long an earlier leader may still finish its last write. Until then the
	// ledger is read at each poll, so that a slot is freed that no other process would free.
	leadYoung = 2 * time.Minute
	// ledgerGood is how long the ledger is not read while nothing waits. After that time, what
	// people see in it is correct again, for example the slot of a process that slept for hours.
	ledgerGood = 10 * time.Minute
)

// ledgerOld reports whether the ledger must be read although no decision needs it. led is when this
// process became the leader.
func (e *Engine) ledgerOld(led time.Time) bool {
	now := e.Clock.Now()
	return now.Sub(led) < leadYoung || now.Sub(e.ledgerRead) >= ledgerGood
}

// prefetchFor notes that Alertmanager is being queried for a node that may be repaired next, and
// meanwhile asks the provider about its machine. It asks about one machine at a time, because most
// nodes of a storm are never repaired.
func (p *pass) prefetchFor(s *lifecycle.State, r *remediations.Record, d lifecycle.Decision) {
	p.prefetchDue = p.prefetchDue || (d.Verb == lifecycle.VerbLook && (r == nil || !r.Phase.InFlight()))
	if d.AskStep != (remediations.StepOn{}) && !d.Ask.Survey && p.surveys == 0 {
		p.survey(s, d)
	}
}

// prefetch reads the other inputs of the decision while Alertmanager is being queried. These are
// all nodes' leases and the ledger. An earlier leader may have changed the ledger, which is not
// read while no repair is needed. The loop has no other work until Alertmanager answers.
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

// Expect reports that an alert is about to be written on a Node, so that the leases are ready when
// the alert is there. It never blocks.
func (e *Engine) Expect() {
	select {
	case e.expected <- struct{}{}:
	default:
	}
}

// prefetchLeases lists the leases beside the loop if a decision would request them. The list of a
// large fleet takes longer than all else between an alert and its repair.
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
			e.enqueue(func() {}) // wake the loop: it did not wait for this list
		}
	})
}

// beatsOld reports whether the count of the leases is too old.
func (e *Engine) beatsOld() bool {
	return e.heartbeats == nil || e.Clock.Now().Sub(e.heartbeats.ReadAt) > beatsGood
}

// listed are all leases, or the error. If a sample is enough, few is its count.
type listed struct {
	few    *signs.Heartbeats
	leases map[string]signs.Lease
	err    error
	at     time.Time
}

// sampleFor bounds the reads of a sample. After that all leases are listed, with a time limit of
// their own.
const sampleFor = 2 * time.Second

// sample returns the nodes whose leases are read instead of all leases. It returns none if only a
// count of all leases may decide: in a small fleet, while the leases cannot be listed, and while
// Drydock is blind, until a count of all leases shows otherwise.
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

// counts reports whether the lease with this name counts: its Node exists and is not excluded.
// Leases of deleted nodes may remain, and leases of machines that are off on purpose are stale.
func (e *Engine) counts(name string) bool {
	n := e.roster.Node(name)
	return n != nil && !remediations.Excluded(n)
}

// list reads the leases of the sample. It reads all leases if the sample is empty or proves
// nothing. It runs beside the loop.
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

// prefetchedLeases takes in the list of prefetchLeases once it has arrived. After a failure, the
// next decision that needs the leases lists them again, after a wait.
func (e *Engine) prefetchedLeases() {
	select {
	case l := <-e.listing:
		e.listing = nil
		e.countLeases(l)
	default:
	}
}

// countLeases turns the leases into the count that decisions use.
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
		e.Log.Error(l.err, "the nodes' leases cannot be listed; nothing is begun without them")
		e.leasesOut.failed(e.Clock.Now(), l.err, outageLongest)
		return
	}
	e.leasesOut.over()
	e.heartbeats = h
}
