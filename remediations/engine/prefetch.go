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

// beatsGood is how long a count of the leases is used: Decide asks for another one after that.
const beatsGood = 10 * time.Second

const (
	// leadYoung is how long one that led before may still write what it was about to: until then the ledger is read at each
	// poll, so that a slot that nobody else would free is freed.
	leadYoung = 2 * time.Minute
	// ledgerGood is how long the ledger is not read at all while nothing waits. What people see in it, such as a slot of
	// one that slept for hours, is right again after that.
	ledgerGood = 10 * time.Minute
)

// ledgerOld says that the ledger is to be read whether or not anything rests on it. led is since when this one leads.
func (e *Engine) ledgerOld(led time.Time) bool {
	now := e.Clock.Now()
	return now.Sub(led) < leadYoung || now.Sub(e.ledgerRead) >= ledgerGood
}

// prefetchFor notes that Alertmanager is being asked on account of a node that may be repaired next, and asks the provider about
// its machine meanwhile: about one at a time, since most of a storm's are never repaired.
func (p *pass) prefetchFor(s *lifecycle.State, r *remediations.Record, d lifecycle.Decision) {
	p.prefetchDue = p.prefetchDue || (d.Verb == lifecycle.VerbLook && (r == nil || !r.Phase.InFlight()))
	if d.AskStep != (remediations.StepOn{}) && !d.Ask.Survey && p.surveys == 0 {
		p.survey(s, d)
	}
}

// prefetch reads, while Alertmanager is being asked, what the decision will rest on besides its answer: all nodes' leases,
// and the ledger, which one that led before may have changed and which is not read while nothing is to be repaired. The
// loop has nothing else to do until the answer comes.
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

// Expect tells the engine that an alert is about to be written on a Node, so that the leases are here when it is there. It
// never blocks.
func (e *Engine) Expect() {
	select {
	case e.expected <- struct{}{}:
	default:
	}
}

// prefetchLeases lists the leases beside the loop where a decision would ask for them: the list of a large fleet takes longer
// than all else on the way from an alert to its repair.
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
			e.enqueue(func() {}) // the loop did not wait for it
		}
	})
}

// beatsOld says that no count of the leases is good any more.
func (e *Engine) beatsOld() bool {
	return e.heartbeats == nil || e.Clock.Now().Sub(e.heartbeats.ReadAt) > beatsGood
}

// listed are all leases, or why they are not here. Where a sample of them is enough, few is its count.
type listed struct {
	few    *signs.Heartbeats
	leases map[string]signs.Lease
	err    error
	at     time.Time
}

// sampleFor bounds the reads of a sample. All leases are listed after that, which has a time of its own.
const sampleFor = 2 * time.Second

// sample picks the nodes whose leases are read instead of all. It picks none where only the count of all may decide: in a
// small fleet, while the leases cannot be listed, and from when the fleet was last found blind until a count of all leases
// says that it is not.
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

// counts says that the lease of this name counts: its Node exists and is not excluded. Leases of nodes that are gone may
// linger, and those of machines that are switched off on purpose are stale.
func (e *Engine) counts(name string) bool {
	n := e.roster.Node(name)
	return n != nil && !remediations.Excluded(n)
}

// list reads the leases of the sample, and all of them where the sample is empty or proves nothing. It runs beside the loop.
func (e *Engine) list(ctx context.Context, sample []string, fleet int) listed {
	if few := e.countSample(ctx, sample, fleet); few != nil {
		return listed{few: few, at: few.ReadAt}
	}
	leases, err := e.Fleet.Heartbeats(ctx)
	return listed{leases: leases, err: err, at: e.Clock.Now()}
}

// countSample returns nil where the sample is empty, cannot be read, or proves nothing.
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

// prefetchedLeases takes in what prefetchLeases listed, once it is here. What failed is asked for again by who needs it, after a while.
func (e *Engine) prefetchedLeases() {
	select {
	case l := <-e.listing:
		e.listing = nil
		e.countLeases(l)
	default:
	}
}

// countLeases makes of leases what a decision rests on.
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
