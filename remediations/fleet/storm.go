package fleet

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func zoneScope(zone string) string { return "zone/" + zone }

// seenFor is the longest time between two passes that counts as observed: a leader that was away
// observed nothing.
const seenFor = 2 * time.Minute

// Judge updates the breakers. The cluster's breaker counts all nodes: all repairs stop when more
// than limits.unhealthy are unhealthy. A zone's breaker counts the zone's nodes, so that it can
// stop one zone while the cluster as a whole continues. A breaker stays after its zone's Nodes are
// gone, until it has been calm for long enough. While Drydock is blind, no breaker changes.
func (f *Fleet) Judge(l *ledger.Ledger, blind bool, now time.Time) {
	before := l.Status.Breakers
	f.Unjudged, f.Breakers = blind, map[string]ledger.Breaker{}
	if blind || f.nodes == 0 { // an empty fleet is missing data, and not a calm fleet
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

// move gives the breaker of one scope its next state.
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
			if m := f.underWay(b.Trial); m != nil && m.held() { // another node may be tried meanwhile
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
		return // the breaker is closed, or all nodes are well again and no trial is needed
	}
	b.Unhealthy, b.Nodes = of.unhealthy, of.nodes
	f.Breakers[scope] = b
}

func opened(now time.Time) ledger.Breaker {
	return ledger.Breaker{State: ledger.BreakerOpen, Since: remediations.Instant(now), Quiet: remediations.Instant(now), Seen: remediations.Instant(now)}
}

// unseen excludes the time since the breaker was last judged from its calm time.
func unseen(b ledger.Breaker, now time.Time) ledger.Breaker {
	if gap := remediations.Instant(now).Sub(b.Seen); gap > 0 && !b.Seen.IsZero() {
		b.Quiet = b.Quiet.Add(gap)
	}
	b.Seen = remediations.Instant(now)
	return b
}

// endOf returns how the repair on trial ended; empty: it continues. It checks what exists: a repair
// continues while a Node has its record, or the ledger its slot or its orphan. A repair that left
// no trace counts as Superseded.
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

// underWay returns the member with that repair of its own, unless the repair is exhausted; nil:
// none.
func (f *Fleet) underWay(repair string) *Member {
	for _, m := range f.roster.concerned {
		if r := m.own; r != nil && r.ID == repair && r.Phase != remediations.PhaseExhausted {
			return m
		}
	}
	return nil
}

// NodeOf returns the node that has the repair's record; empty: no Node has it.
func (f *Fleet) NodeOf(repair string) string {
	if node := f.trying[repair]; node != "" {
		return node // its record was written after the Nodes were read
	}
	if m := f.underWay(repair); m != nil {
		return m.Node.Name
	}
	return ""
}

// BreakersFor returns the scopes of the breakers that are not closed and apply to a node of the
// zone, the open ones first.
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

// Stop is why an open breaker holds all disruptive repairs of its scope. Two equal Stops
// have the same message.
type Stop struct {
	Scope            string
	Unhealthy, Nodes int
	// Calm is since when the storm has ended; zero: it has not.
	Calm time.Time
}

// Stopped returns the Stop for a node of the zone; false: no breaker that applies to it is open.
func (f *Fleet) Stopped(zone string, now time.Time) (Stop, bool) {
	scopes := f.BreakersFor(zone)
	if len(scopes) == 0 || f.Breakers[scopes[0]].State != ledger.BreakerOpen { // the open ones come first
		return Stop{}, false
	}
	b := f.Breakers[scopes[0]]
	s := Stop{Scope: scopes[0], Unhealthy: b.Unhealthy, Nodes: b.Nodes}
	if b.Quiet.Before(remediations.Instant(now)) {
		s.Calm = b.Quiet
	}
	return s, true
}

// Busy returns another node of the scope that is under repair; empty: none. A parked node does not
// count: the trial may be its next step.
func (f *Fleet) Busy(scope, except string) (node string) {
	for name, p := range f.occupied {
		if name != except && !p.wouldBe && !p.parked && (scope == ledger.ScopeCluster || p.inZone(strings.TrimPrefix(scope, zoneScope("")))) && (node == "" || name < node) {
			node = name
		}
	}
	return node
}

// Try records the repair of the node as the one that half-open breakers let through.
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

// Trials returns the scopes whose half-open breaker waits for the repair's end.
func (f *Fleet) Trials(repair string) (scopes []string) {
	for scope, b := range f.Breakers {
		if b.State == ledger.BreakerHalfOpen && b.Trial == repair {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}

// Cured closes the breakers that wait for the repair's end. The repair cured its machine, but no
// Node has a record of that.
func (f *Fleet) Cured(repair string) {
	for _, scope := range f.Trials(repair) {
		delete(f.Breakers, scope)
	}
}

// Reopen opens the breakers that a trial had closed, because its cure did not last.
func (f *Fleet) Reopen(scopes []string, now time.Time) {
	for _, scope := range scopes {
		if f.Breakers[scope].State != ledger.BreakerOpen {
			f.Breakers[scope] = opened(now)
		}
	}
}
