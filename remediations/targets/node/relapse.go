package node

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// begins reports whether any step could be made if this repair did not continue an earlier one.
func (s *state) begins(p *remediations.Policy, r *remediations.Record) bool {
	fresh := r.Clone()
	fresh.After = nil
	_, ok := s.FirstStep(p, fresh)
	return ok
}

// lastCure also reads the ledger: only the ledger has the cure if the Node was deleted and has
// registered again.
func (s *state) lastCure(policy string) *ledger.Cure {
	var known *ledger.Cure
	if s.Ledger != nil {
		known = s.Ledger.LastCure(s.Node, policy)
	}
	for _, e := range s.Journal.History {
		if e.Policy != policy || remediations.KindOf(e.Target) != "" || e.DidNothing() {
			continue
		}
		switch {
		case known != nil && known.Repair == e.ID:
			known.Relapsed = known.Relapsed || e.Outcome == remediations.OutcomeRelapsed
		case known == nil || known.At.Before(e.Ended):
			return ledger.CureOf(e)
		}
		break
	}
	return known
}

// relapse returns the earlier cure that did not last, because the alert returned within the
// policy's relapseWindow. The start of the alert counts, not the start of its repair, which a guard
// may have held. The time while Drydock could not observe alerts does not count.
//
// A repair with the outcome SelfRecovered counts as a cure here. Its steps cured nothing, so the
// next repair continues its plan.
func (s *state) relapse(p *remediations.Policy, a *remediations.Alert, now time.Time) *ledger.Cure {
	if s.Ledger == nil {
		return nil
	}
	c := s.lastCure(p.Name)
	if c == nil {
		return nil
	}
	window := p.RelapseWindow
	if c.Relapsed { // nothing was cured, so passing time does not restart the plan
		window = max(window, s.Config.Limits.RepairsWindow)
	}
	began := now
	for _, t := range []time.Time{a.ReceivedAt, a.StartsAt} {
		if t.After(c.At) && t.Before(began) {
			began = t
		}
	}
	if began.Sub(c.At)-s.Ledger.UnseenIn(c.At, began) >= window {
		return nil
	}
	return c
}

// relapsed reports the failed cure when the repair that continues the plan issues its step or ends.
func (s *state) relapsed(d *lifecycle.Decision) {
	if d.Record == nil || d.Record.After == nil || (d.Verb != lifecycle.VerbIssue && d.Verb != lifecycle.VerbEnd) {
		return
	}
	if c := s.lastCure(d.Record.Policy); c != nil && c.Repair == d.Record.After.ID && !c.Relapsed {
		d.Relapsed = c
	}
}

// spentPlan ends a repair whose steps earlier repairs have all tried. The guards are checked first,
// as before a step.
func (s *state) spentPlan(c *lifecycle.Candidate, r *remediations.Record) lifecycle.Decision {
	if s.Ledger == nil {
		return s.IssueOrHold(c, r) // which waits for the ledger, or holds the repair
	}
	c.Own = r.ID
	if reason, f := c.HeldBy(nil); f != nil && reason != remediations.ReasonObserving {
		return s.IssueOrHold(c, r)
	}
	if c.Unwitnessed() {
		return s.lookOnce(c, lifecycle.Ask{Witness: true})
	}
	return of(s.State, r).exhaust(c.Policy, c.Now)
}
