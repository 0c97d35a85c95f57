package engine

import (
	"context"
	"time"

	"drydock.dev/drydock/remediations"
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

// want notes that Alertmanager is being asked on account of a node that may be repaired next, and asks the provider about
// its machine meanwhile: about one at a time, since most of a storm's are never repaired.
func (p *passing) want(s *remediations.State, d remediations.Decision) {
	r := s.Journal.Record
	p.ahead = p.ahead || (d.Verb == remediations.Look && (r == nil || !r.Phase.InFlight()))
	if d.AskStep != "" && !d.Ask.Survey && p.surveys == 0 {
		p.survey(s, d)
	}
}

// readAhead reads, while Alertmanager is being asked, what the decision will rest on besides its answer: the ledger, which
// one that led before may have changed and which is not read while nothing is to be repaired, and all nodes' leases. The
// loop has nothing else to do until the answer comes.
func (e *Engine) readAhead(ctx context.Context) {
	now := e.Clock.Now()
	if !e.ahead || !e.looking || ctx.Err() != nil {
		return
	}
	e.ahead = false
	if e.ledger != nil && now.Sub(e.ledgerRead) >= e.PollInterval {
		e.loadLedger(ctx, e.nodes)
	}
	if e.heartbeats == nil || now.Sub(e.heartbeats.ReadAt) > beatsGood {
		p := &passing{Engine: e, ctx: ctx, now: now}
		p.readHeartbeats()
	}
}
