package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// idle is the longest time between two passes.
	idle = time.Minute
	// soon is the wait after a write conflict: the cache needs a moment to catch up.
	soon = 50 * time.Millisecond
	// patientAfter is how many passes in a row may write nothing before their wait doubles.
	patientAfter = 10
	// later is the wait after the API server refused a request or did not answer.
	later = 2 * time.Second
	// tidyFor bounds the time that one pass spends on writes that only clean up. After a storm
	// there are thousands, and a person's request must not wait for all of them.
	tidyFor = 500 * time.Millisecond
)

type pass struct {
	*Engine
	ctx   context.Context
	now   time.Time
	fleet *fleet.Fleet
	tally *tally
	// holds are the fleet-wide holds, with the message about the first held node.
	holds map[remediations.Reason]string
	// concerns has the policy, zone or node pool of a hold. A hold without one applies to all
	// nodes.
	concerns map[remediations.Reason]remediations.Concern
	next     time.Time
	failed   bool
	// ends are those that the Nodes show and the ledger lacks.
	ends    []endsOn
	tidying time.Duration
}

// pass decides about every node with an alert, a record or a person's request, and returns the time
// until the next pass.
func (e *Engine) pass(ctx context.Context) time.Duration {
	e.again, e.waiting, e.prefetchDue = false, false, false
	if e.standsAside(ctx) {
		return later
	}
	writesDone := e.writesDone
	if err := e.readNodes(ctx); err != nil {
		e.Log.Error(err, "the Nodes cannot be listed; nothing is decided, and no repair continues")
		for _, m := range e.memory {
			m.stopWork()
		}
		return later
	}
	if e.nodesNew {
		e.nodesNew = false
		e.metrics.answered(sourceNodes, e.Clock.Now())
	}
	e.prefetchedLeases()
	lost := e.attempts.lost(e.Clock.Now().Add(-e.Config.LongestWait()), e.shownOn)
	if e.ledger == nil || len(lost) > 0 { // after the store went back to an older state, the ledger in memory still shows what the store has lost
		e.loadLedger(ctx)
	}
	e.judgeLost(lost)
	l := e.ledger
	if l == nil { // without a ledger, the expected GPUs come from the last ledger that was read
		l = &ledger.Ledger{GPUs: e.roster.LedgerGPUs()}
	}
	now := e.Clock.Now()
	e.goneBack(l, now)
	e.stale = e.behind(now)
	e.readWrites()
	p := &pass{Engine: e, ctx: ctx, now: now, tally: newTally(), holds: map[remediations.Reason]string{}, concerns: map[remediations.Reason]remediations.Concern{}, next: now.Add(idle)}
	if (len(l.Status.Breakers) > 0 || e.heartbeats.Blind() != "" || !e.leasesOut.since.IsZero()) && e.beatsOld() {
		p.readHeartbeats() // an open breaker needs the leases to close, and while no alert fires no node requests them
	}
	if e.ledger != nil && e.ledger.Ahead(now) {
		l = p.clamp()
	}
	p.forgetTorn(&memory{})
	if e.breakersTold == nil && e.ledger != nil {
		e.breakersTold = map[string]ledger.Breaker{}
		maps.Copy(e.breakersTold, e.ledger.Status.Breakers)
	}
	p.fleet = e.roster.Fleet(l, p.blind(), now)
	p.expireBreakGlass()
	e.passes++
	e.busySidecars, e.sidecarsCounted = e.roster.SidecarsInFlight(now), now
	order := e.order()
	e.concerned = len(order)
	for _, n := range order {
		if ctx.Err() != nil {
			return later
		}
		p.visit(n)
	}
	e.forgetTargets()
	e.forgetHolds()
	p.successors()
	p.sweep()
	p.learn()
	p.publish()
	switch {
	case p.failed:
		return later
	case e.again:
		return e.hurry(writesDone)
	}
	e.hurries = 0
	if e.ledger == nil {
		p.retry(e.ledgerOut)
	}
	return max(p.next.Sub(e.Clock.Now()), time.Millisecond)
}

// hurry lets the wait grow while the passes write nothing: they wait for a change from outside, and
// more passes do not cause it.
func (e *Engine) hurry(writesBefore int) time.Duration {
	if e.writesDone > writesBefore {
		e.hurries = 0
	}
	e.hurries++
	return min(soon<<min(e.hurries/patientAfter, 10), later)
}

// clamp sets future times in the ledger to now, but only if most kubelet leases confirm this
// replica's clock.
func (p *pass) clamp() *ledger.Ledger {
	was := p.ledger
	if p.readHeartbeats(); !remediations.ClocksAgree(p.heartbeats, p.Clock.Now()) {
		return was
	}
	l := was.Clone()
	l.Clamp(p.now)
	p.Log.Info("the ledger had times in the future; they were set to the current time")
	if p.saveLedger(p.ctx, l, p.ledgerAt) != nil {
		return was
	}
	return l
}

// blind reports whether this pass cannot judge how many nodes are unhealthy.
func (p *pass) blind() bool {
	return p.ledger == nil || !p.word.Sees(p.Config) || p.now.Sub(p.word.AskedAt) > max(idle, 2*p.PollInterval) ||
		p.heartbeats.Blind() != "" || p.leasesOut.lasting(p.now) || p.stale != ""
}

// noteBlind returns zero until the process has been blind for the duration idle.
func (p *pass) noteBlind() time.Time {
	switch {
	case !p.blind():
		p.blindSince = time.Time{}
	case p.blindSince.IsZero():
		p.blindSince = p.now
	}
	if p.now.Sub(p.blindSince) < idle {
		return time.Time{}
	}
	return p.blindSince
}

// order returns nodes under repair first, then the nodes with the oldest fault.
func (e *Engine) order() []*corev1.Node {
	concerned := e.roster.Concerned()
	turns := make([]fleet.Turn, 0, len(concerned))
	take := func(n *corev1.Node) {
		since, fires := e.firing[n.Name]
		turns = append(turns, fleet.TurnOf(n, since, fires))
	}
	for _, m := range concerned {
		take(m.Node)
	}
	for name := range e.working {
		switch m, n := e.memory[name], e.roster.Member(name); {
		case m == nil || m.work == nil:
			delete(e.working, name)
		case n != nil && !n.Concerned:
			take(n.Node)
		}
	}
	return fleet.InTurn(turns)
}

func (p *pass) state(n *corev1.Node) *lifecycle.State {
	m, journal := p.remember(n.Name), p.journal(n)
	p.forgetTorn(m)
	if _, asked := n.Annotations[remediations.ResetKey]; !asked {
		m.reset = ""
	}
	return &lifecycle.State{
		Reset: m.reset, Behind: p.stale, Denied: p.writes.Denied, LedgerLost: p.ledgerOut.since, LeasesLost: p.leasesOut.since, LeasesErr: p.leasesOut.err,
		Config: p.Config, Node: n, Journal: journal, Snapshot: p.word, Fleet: p.fleet,
		Ledger: p.ledger, LedgerErr: p.ledgerErr, Lease: m.lease, Heartbeats: p.heartbeats, Call: m.call,
		Read: m.read, Survey: m.survey, Replacement: m.replacement, Pods: m.pods, LookSince: m.lookSince, WellSince: m.wellSince, WellHeard: m.wellHeard, NewID: m.nextID(journal, p.NewID),
	}
}

// journal decodes once for each version of the Node. A decoded journal is never changed.
func (e *Engine) journal(n *corev1.Node) remediations.Journal {
	m := e.remember(n.Name)
	if m.readOf == n {
		return m.journal
	}
	if m.readOf == nil || !maps.Equal(m.readOf.Annotations, n.Annotations) { // a mere heartbeat changes no annotation
		m.journal = e.Config.Registry.ReadJournal(n)
	}
	m.readOf = n
	if sig := signature(n); sig != m.alerts {
		// Alerts or people's annotations on the Node have changed, so an older answer of
		// Alertmanager is too old. For example, a person may create a silence and then remove a
		// pause: an older answer lacks the silence.
		m.alerts, m.lookSince = sig, time.Time{}
	}
	return m.journal
}

func signature(n *corev1.Node) uint64 {
	var sum uint64
	for k, v := range n.Annotations {
		if strings.HasPrefix(k, remediations.AlertPrefix) || (remediations.Relevant(k) && !remediations.Owned(k)) {
			h := fnv.New64a()
			_, _ = h.Write([]byte(k + "\x00" + v))
			sum += h.Sum64()
		}
	}
	if remediations.Excluded(n) {
		sum++
	}
	if n.Spec.Unschedulable {
		sum += 2
	}
	return sum
}

// write remembers the result, so that the next decision uses it even if the cache does not show it
// yet.
func (e *Engine) write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error) {
	m := e.remember(n.Name)
	if e.lacksCharge() != "" {
		return nil, ErrNotInCharge
	}
	if !m.writes.due(e.Clock.Now()) {
		return nil, m.writes.err
	}
	written, err := e.Writer.Write(ctx, n, c)
	m.unwritten = errors.Is(err, ErrUnwritten)
	switch {
	case err == nil:
		e.writesDone++
		m.writes.over()
		m.written, m.over, m.wroteAt = written, n, e.Clock.Now()
		e.wrote[n.Name] = m
		m.alerts = signature(written)
		return written, nil
	case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
		e.again = true
	case ctx.Err() != nil: // this process is stopping, and may still put a call's outcome on record
		e.Log.Error(err, "a Node could not be written", "node", n.Name)
	default:
		m.writes.failed(e.Clock.Now(), err, nodeLongest)
		if m.writes.lasting(e.Clock.Now()) && !m.writes.told {
			m.writes.told = true
			e.Events.Event(n.Name, Event{Warning: true, Reason: "NodeUnwritable", Action: "Write", Note: fmt.Sprintf("Drydock has not been able to write its annotations on Node %s since %s: %v. The node's repair does not continue. Look for a webhook, a policy or a size limit that refuses the write.", n.Name, m.writes.since.UTC().Format(time.RFC3339), err)})
		}
		e.Log.Error(err, "a Node could not be written", "node", n.Name)
	}
	return nil, err
}
