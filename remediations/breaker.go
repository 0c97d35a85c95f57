package remediations

import "time"

// Breaker is the storm guard of one scope, as the ledger keeps it. A scope without one is closed, which is the state in
// which repairs go on.
type Breaker struct {
	State BreakerState `json:"state"`
	// Since is when it took this state; Unhealthy and Nodes are the last count.
	Since     time.Time `json:"since"`
	Unhealthy int       `json:"unhealthy"`
	Nodes     int       `json:"nodes"`
	// Quiet is when the scope was last too unhealthy; for a half-open one, when it last had any unhealthy node.
	Quiet time.Time `json:"quiet"`
	// Trial is the repair that a half-open breaker lets through.
	Trial string `json:"trial,omitempty"`
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

// judge moves the breakers on. A zone that is open stops itself alone: its nodes are taken out of the cluster's count,
// so that one lost zone does not stop the others, but two lost zones are the cluster's trouble.
func (f *Fleet) judge(c *Config, before map[string]Breaker, now time.Time) {
	rest, open := f.total, 0
	for zone, z := range f.zones {
		if len(f.zones) < 2 {
			break
		}
		if f.move(c, zoneScope(zone), *z, before, now) == BreakerOpen {
			open++
			rest.nodes, rest.unhealthy = rest.nodes-z.nodes, rest.unhealthy-z.unhealthy
		}
	}
	if open > 1 {
		rest = f.total
	}
	f.move(c, ScopeCluster, rest, before, now)
}

// move gives the breaker of one scope its next state.
func (f *Fleet) move(c *Config, scope string, of census, before map[string]Breaker, now time.Time) BreakerState {
	b, was := before[scope]
	over := of.unhealthy >= 2 && c.Limits.Unhealthy.Exceeded(of.unhealthy, of.nodes)
	calm := now.Sub(b.Quiet) >= c.Limits.StormCooldown
	switch {
	case over && b.State != BreakerOpen:
		b = Breaker{State: BreakerOpen, Since: at(now), Quiet: at(now)}
	case over:
		b.Quiet = at(now)
	case !was:
		return BreakerClosed
	case b.State == BreakerOpen && calm:
		b = Breaker{State: BreakerHalfOpen, Since: at(now), Quiet: at(now)}
	case b.State == BreakerHalfOpen && (of.unhealthy > 0 || b.Trial != ""):
		b.Quiet = at(now)
	case b.State == BreakerHalfOpen && calm:
		return BreakerClosed // everybody is well again, and nobody needs to be tried
	}
	b.Unhealthy, b.Nodes = of.unhealthy, of.nodes
	f.Breakers[scope] = b
	return b.State
}

// breakerFor is the breaker that binds a node of the zone: an open one before a half-open one. An empty scope: none.
func (f *Fleet) breakerFor(zone string) (scope string, b Breaker) {
	for _, state := range []BreakerState{BreakerOpen, BreakerHalfOpen} {
		for _, scope := range []string{ScopeCluster, zoneScope(zone)} {
			if b, ok := f.Breakers[scope]; ok && b.State == state && (scope == ScopeCluster || zone != "") {
				return scope, b
			}
		}
	}
	return "", Breaker{}
}

// busy says that another node of the scope is under repair.
func (f *Fleet) busy(scope, except string) bool {
	for name, p := range f.occupied {
		if name != except && !p.wouldBe && (scope == ScopeCluster || scope == zoneScope(p.zone)) {
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

// Tried tells the breakers how a repair ended: one that was on trial and Recovered closes its breaker, any other end
// opens it again.
func (f *Fleet) Tried(repair string, o Outcome, now time.Time) {
	for scope, b := range f.Breakers {
		switch {
		case b.Trial != repair || b.State != BreakerHalfOpen:
		case o == Recovered:
			delete(f.Breakers, scope)
		default:
			f.Breakers[scope] = Breaker{State: BreakerOpen, Since: at(now), Quiet: at(now), Unhealthy: b.Unhealthy, Nodes: b.Nodes}
		}
	}
}
