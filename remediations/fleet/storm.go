package fleet

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func zoneScope(zone string) string { return "zone/" + zone }

// seenFor is the longest gap between two passes that counts as observed.
const seenFor = 2 * time.Minute

// Judge updates the circuit breakers. The cluster's breaker opens when at least two nodes, and more
// than limits.unhealthy of all nodes, are unhealthy. Then no disruptive repair begins. A zone's
// breaker counts only its own nodes, so that it can stop one zone while the others continue. It
// remains after the zone's Nodes are gone, until the zone has been calm for limits.stormCooldown.
//
// blind means that the fleet cannot be observed. Then no breaker changes its state.
func (f *Fleet) Judge(l *ledger.Ledger, blind bool, now time.Time) {
	before := l.Status.Breakers
	f.Unjudged, f.Breakers = blind, map[string]ledger.Breaker{}
	if blind || f.nodes == 0 { // a fleet without Nodes is missing data, and not calm
		for scope, b := range before {
			b = unseen(b, now)
			b.Frozen = true
			f.Breakers[scope] = b
		}
		return
	}
	zones, several := map[string]census{}, len(f.zones) > 1
	for zone, z := range f.zones {
		if _, was := before[zoneScope(zone)]; several || was {
			zones[zoneScope(zone)] = *z
		}
	}
	for scope := range before {
		if _, counted := zones[scope]; !counted && strings.HasPrefix(scope, zoneScope("")) {
			zones[scope] = census{}
		}
	}
	for scope, z := range zones {
		f.move(l, scope, z, now)
	}
	f.move(l, ledger.ScopeCluster, f.total, now)
}

func (f *Fleet) move(l *ledger.Ledger, scope string, of census, now time.Time) {
	c := f.roster.config
	b := l.Status.Breakers[scope]
	if b.Frozen || now.Sub(b.Seen) > seenFor {
		b = unseen(b, now)
	}
	b.Seen, b.Frozen = remediations.Instant(now), false
	over := of.unhealthy >= 2 && c.Limits.Unhealthy.Exceeded(of.unhealthy, of.nodes)
	calm := now.Sub(b.Quiet) >= c.Limits.StormCooldown
	switch {
	case over && b.State != ledger.BreakerOpen:
		b = opened(now)
	case over:
		b.Quiet = remediations.Instant(now)
	case b.State == ledger.BreakerOpen && calm:
		b = opened(now)
		b.State = ledger.BreakerHalfOpen
	case b.State == ledger.BreakerHalfOpen && b.Trial != "":
		switch f.endOf(b.Trial, l) {
		case "":
			if m := f.underWay(b.Trial); m != nil && m.held() { // the trial is held, so another node's repair may be the trial
				b.Trial = ""
			}
			b.Quiet = remediations.Instant(now)
		case remediations.OutcomeRecovered:
			return
		default:
			b = opened(now)
		}
	case b.State == ledger.BreakerHalfOpen && of.unhealthy > 0:
		b.Quiet = remediations.Instant(now)
	case calm:
		return // the breaker is closed, or it closes because all nodes are well and no trial is needed
	}
	b.Unhealthy, b.Nodes = of.unhealthy, of.nodes
	f.Breakers[scope] = b
}

func opened(now time.Time) ledger.Breaker {
	return ledger.Breaker{State: ledger.BreakerOpen, Since: remediations.Instant(now), Quiet: remediations.Instant(now), Seen: remediations.Instant(now)}
}

// unseen moves b.Quiet forward, so that the time without observation does not count toward
// limits.stormCooldown.
func unseen(b ledger.Breaker, now time.Time) ledger.Breaker {
	if gap := remediations.Instant(now).Sub(b.Seen); gap > 0 && !b.Seen.IsZero() {
		b.Quiet = b.Quiet.Add(gap)
	}
	b.Seen = remediations.Instant(now)
	return b
}

// endOf returns how the trial repair ended, or an empty text while a Node or the ledger still has
// it. A repair without any trace counts as Superseded.
func (f *Fleet) endOf(repair string, l *ledger.Ledger) remediations.Outcome {
	for _, s := range l.Slots {
		if s.Repair == repair {
			return ""
		}
	}
	for i := range l.Orphans {
		if l.Orphans[i].Record.ID == repair {
			return ""
		}
	}
	if f.underWay(repair) != nil {
		return ""
	}
	for _, m := range f.roster.members {
		history := m.Node.Annotations[remediations.HistoryKey]
		if !strings.Contains(history, repair) {
			continue
		}
		for _, e := range remediations.DecodeHistory(history) {
			if e.ID == repair {
				return e.Outcome
			}
		}
	}
	return remediations.OutcomeSuperseded
}

func (f *Fleet) underWay(repair string) *Member {
	for _, m := range f.roster.concerned {
		if r := m.own; r != nil && r.ID == repair && r.Phase != remediations.PhaseExhausted {
			return m
		}
	}
	return nil
}

// NodeOf returns the node that has the repair's record, or an empty text.
func (f *Fleet) NodeOf(repair string) string {
	if node := f.trying[repair]; node != "" {
		return node // this pass wrote the record after the Nodes were read
	}
	if m := f.underWay(repair); m != nil {
		return m.Node.Name
	}
	return ""
}

// BreakersFor returns the scopes of the breakers that stop a node of the zone. The open ones come
// first.
func (f *Fleet) BreakersFor(zone string) (scopes []string) {
	for _, state := range []ledger.BreakerState{ledger.BreakerOpen, ledger.BreakerHalfOpen} {
		for _, scope := range []string{ledger.ScopeCluster, zoneScope(zone)} {
			if f.Breakers[scope].State == state && (scope == ledger.ScopeCluster || zone != "") {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

// Stop is an open breaker. Equal Stops have the same message.
type Stop struct {
	Scope            string
	Unhealthy, Nodes int
	// Calm is when the scope last had too many unhealthy nodes, or zero if it still has.
	Calm time.Time
}

// Stopped returns the open breaker for nodes of the zone.
func (f *Fleet) Stopped(zone string, now time.Time) (Stop, bool) {
	scopes := f.BreakersFor(zone)
	if len(scopes) == 0 || f.Breakers[scopes[0]].State != ledger.BreakerOpen { // the open breakers come first
		return Stop{}, false
	}
	b := f.Breakers[scopes[0]]
	s := Stop{Scope: scopes[0], Unhealthy: b.Unhealthy, Nodes: b.Nodes}
	if b.Quiet.Before(remediations.Instant(now)) {
		s.Calm = b.Quiet
	}
	return s, true
}

// Busy returns another node of the scope that is under repair, or an empty text: a half-open
// breaker waits for it. A node that is drained and waits does not count, because its next step may
// be the trial itself.
func (f *Fleet) Busy(scope, except string) (node string) {
	for name, p := range f.occupied {
		if name != except && !p.wouldBe && !p.parked && (scope == ledger.ScopeCluster || p.inZone(strings.TrimPrefix(scope, zoneScope("")))) && (node == "" || name < node) {
			node = name
		}
	}
	return node
}

// Try makes this repair the trial of each half-open breaker that has none and applies to the node.
func (f *Fleet) Try(zone, node, repair string) {
	if f.trying == nil {
		f.trying = map[string]string{}
	}
	f.trying[repair] = node
	for _, scope := range []string{ledger.ScopeCluster, zoneScope(zone)} {
		if b := f.Breakers[scope]; b.State == ledger.BreakerHalfOpen && b.Trial == "" {
			b.Trial = repair
			f.Breakers[scope] = b
		}
	}
}

// Trials returns the scopes whose half-open breaker waits for this repair.
func (f *Fleet) Trials(repair string) (scopes []string) {
	for scope, b := range f.Breakers {
		if b.State == ledger.BreakerHalfOpen && b.Trial == repair {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}

// Cured closes the breakers that wait for this repair. The caller uses it if the repair cured its
// machine and no Node has a record of that.
func (f *Fleet) Cured(repair string) {
	for _, scope := range f.Trials(repair) {
		delete(f.Breakers, scope)
	}
}

// Reopen opens the breakers again, because the cure that closed them did not last.
func (f *Fleet) Reopen(scopes []string, now time.Time) {
	for _, scope := range scopes {
		if f.Breakers[scope].State != ledger.BreakerOpen {
			f.Breakers[scope] = opened(now)
		}
	}
}
