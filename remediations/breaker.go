package remediations

import (
	"slices"
	"strings"
	"time"
)

// Breaker is the storm guard of one scope, as the ledger keeps it. A scope without one is closed, which is the state in
// which repairs go on.
type Breaker struct {
	State BreakerState `json:"state"`
	// Since is when it took this state; Unhealthy and Nodes are the last count.
	Since     time.Time `json:"since"`
	Unhealthy int       `json:"unhealthy"`
	Nodes     int       `json:"nodes"`
	// Quiet is when the scope was last too unhealthy; for a half-open one, when it last had any unhealthy node. Time in
	// which Drydock could not see the fleet is added to it, because nobody knows whether that time was calm.
	Quiet time.Time `json:"quiet"`
	// Trial is the repair that a half-open breaker lets through.
	Trial string `json:"trial,omitempty"`
	// Seen is when the breaker was last judged. Frozen: Drydock could not see the fleet then.
	Seen   time.Time `json:"seen,omitzero"`
	Frozen bool      `json:"frozen,omitempty"`
}

// BreakerState is one of three.
type BreakerState string

const (
	// BreakerClosed: repairs go on.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen: no disruptive repair begins.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen: one disruptive repair, of the oldest fault; how it ends decides.
	BreakerHalfOpen BreakerState = "half-open"
)

// BreakerStates is the closed list.
var BreakerStates = []BreakerState{BreakerClosed, BreakerOpen, BreakerHalfOpen}

// ScopeCluster is the breaker over all nodes.
const ScopeCluster = "cluster"

func zoneScope(zone string) string { return "zone/" + zone }

// seenFor is the longest time between two passes that counts as seen: a leader that was away saw nothing.
const seenFor = 2 * time.Minute

// Judge moves the breakers on. A zone that is open stops itself alone: its nodes are taken out of the cluster's count,
// so that one lost zone does not stop the others, but two lost zones are the cluster's trouble. A breaker outlives its
// zone's Nodes until it has been calm for long enough. While Drydock is blind no breaker moves.
func (f *Fleet) Judge(l *Ledger, blind bool, now time.Time) {
	before := l.Status.Breakers
	f.Unjudged, f.Breakers = blind, map[string]Breaker{}
	if blind || f.nodes == 0 { // an empty fleet is no data, and not a calm fleet
		for scope, b := range before {
			b = b.unseen(now)
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
	rest, open := f.total, 0
	for scope, z := range zones {
		if f.move(l, scope, z, now) == BreakerOpen && several {
			open++
			rest.nodes, rest.unhealthy = rest.nodes-z.nodes, rest.unhealthy-z.unhealthy
		}
	}
	if open > 1 {
		rest = f.total
	}
	f.move(l, ScopeCluster, rest, now)
}

// move gives the breaker of one scope its next state.
func (f *Fleet) move(l *Ledger, scope string, of census, now time.Time) BreakerState {
	c := f.roster.config
	b, was := l.Status.Breakers[scope]
	if was && (b.Frozen || now.Sub(b.Seen) > seenFor) {
		b = b.unseen(now)
	}
	b.Seen, b.Frozen = Instant(now), false
	over := of.unhealthy >= 2 && c.Limits.Unhealthy.Exceeded(of.unhealthy, of.nodes)
	calm := now.Sub(b.Quiet) >= c.Limits.StormCooldown
	switch {
	case over && b.State != BreakerOpen:
		b = opened(now)
	case over:
		b.Quiet = Instant(now)
	case !was:
		return BreakerClosed
	case b.State == BreakerOpen && calm:
		b = opened(now)
		b.State = BreakerHalfOpen
	case b.State == BreakerHalfOpen && b.Trial != "":
		switch f.endOf(b.Trial, l) {
		case "":
			b.Quiet = Instant(now)
		case Recovered:
			return BreakerClosed
		default:
			b = opened(now)
		}
	case b.State == BreakerHalfOpen && of.unhealthy > 0:
		b.Quiet = Instant(now)
	case b.State == BreakerHalfOpen && calm:
		return BreakerClosed // everybody is well again, and nobody needs to be tried
	}
	b.Unhealthy, b.Nodes = of.unhealthy, of.nodes
	f.Breakers[scope] = b
	return b.State
}

func opened(now time.Time) Breaker {
	return Breaker{State: BreakerOpen, Since: Instant(now), Quiet: Instant(now), Seen: Instant(now)}
}

// unseen takes the time since the breaker was last judged out of its calm time.
func (b Breaker) unseen(now time.Time) Breaker {
	if gap := Instant(now).Sub(b.Seen); gap > 0 && !b.Seen.IsZero() {
		b.Quiet = b.Quiet.Add(gap)
	}
	b.Seen = Instant(now)
	return b
}

// endOf says how the repair on trial ended; empty: it goes on. It asks what exists and not who was told: a repair goes on
// while a Node has its record, or the ledger its slot or its orphan. One that left no trace counts as Superseded.
func (f *Fleet) endOf(repair string, l *Ledger) Outcome {
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
	for _, m := range f.roster.all {
		if m.repair == repair {
			return ""
		}
	}
	for _, m := range f.roster.all {
		history := m.Node.Annotations[HistoryKey]
		if !strings.Contains(history, repair) {
			continue
		}
		for _, e := range DecodeHistory(history) {
			if e.ID == repair {
				return e.Outcome
			}
		}
	}
	return Superseded
}

// breakersFor are the breakers that are not closed and bind a node of the zone, by scope: the open ones first.
func (f *Fleet) breakersFor(zone string) (scopes []string) {
	for _, state := range []BreakerState{BreakerOpen, BreakerHalfOpen} {
		for _, scope := range []string{ScopeCluster, zoneScope(zone)} {
			if b, ok := f.Breakers[scope]; ok && b.State == state && (scope == ScopeCluster || zone != "") {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

// busy says that another node of the scope is under repair.
func (f *Fleet) busy(scope, except string) bool {
	for name, p := range f.occupied {
		if name != except && !p.wouldBe && (scope == ScopeCluster || p.inZone(strings.TrimPrefix(scope, zoneScope("")))) {
			return true
		}
	}
	return false
}

// Try notes the repair as the one that half-open breakers let through.
func (f *Fleet) Try(zone, repair string) {
	for _, scope := range []string{ScopeCluster, zoneScope(zone)} {
		if b, ok := f.Breakers[scope]; ok && b.State == BreakerHalfOpen && b.Trial == "" {
			b.Trial = repair
			f.Breakers[scope] = b
		}
	}
}

// Trials are the scopes whose half-open breaker waits for how the repair ends.
func (f *Fleet) Trials(repair string) (scopes []string) {
	for scope, b := range f.Breakers {
		if b.State == BreakerHalfOpen && b.Trial == repair {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}

// Reopen opens the breakers that a trial had closed, because what it cured did not last.
func (f *Fleet) Reopen(scopes []string, now time.Time) {
	for _, scope := range scopes {
		if f.Breakers[scope].State != BreakerOpen {
			f.Breakers[scope] = opened(now)
		}
	}
}
