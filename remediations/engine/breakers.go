package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// tellBreakers compares with the ledger in its first pass, so that a new leader does not repeat
// what an earlier leader has reported.
func (p *pass) tellBreakers() {
	was, is := p.breakersTold, p.fleet.Breakers
	scopes := slices.Sorted(maps.Keys(is))
	for scope := range was {
		if _, still := is[scope]; !still {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	for _, scope := range slices.Compact(scopes) {
		p.tellBreaker(scope, was[scope], is[scope])
	}
	p.breakersTold = maps.Clone(is)
}

func (p *pass) tellBreaker(scope string, was, is ledger.Breaker) {
	since := is.Since
	var e Event
	switch {
	case is.State == was.State && (is.State != ledger.BreakerHalfOpen || is.Trial == was.Trial || is.Trial == ""):
		return
	case is.State == ledger.BreakerOpen:
		e = Event{Warning: true, Reason: "BreakerOpened", Note: p.openedNote(scope, was, is)}
	case is.State == ledger.BreakerHalfOpen && is.Trial != "":
		first := "repair " + is.Trial
		if node := p.fleet.NodeOf(is.Trial); node != "" {
			first += " of node " + node
		}
		e = Event{Reason: "BreakerHalfOpen", Of: Trail{Repair: is.Trial}, Note: fmt.Sprintf("the breaker of %s is half-open and allows one repair: %s; the other repairs wait until that repair has ended", scope, first)}
	case is.State == ledger.BreakerHalfOpen:
		e = Event{Reason: "BreakerHalfOpen", Note: fmt.Sprintf("the breaker of %s is half-open: few enough nodes have been unhealthy for %s (limits.stormCooldown); one node is repaired first",
			scope, text.Age(p.Config.Limits.StormCooldown))}
	default:
		since = remediations.Instant(p.now)
		e = Event{Reason: "BreakerClosed", Note: fmt.Sprintf("the breaker of %s is closed: repairs may begin again", scope)}
	}
	e.Action = fmt.Sprintf("%s-%s-%s%s", e.Reason, scope, since.UTC().Format(time.RFC3339), is.Trial)
	p.Events.Event("", e)
}

func (p *pass) openedNote(scope string, was, is ledger.Breaker) string {
	why := fmt.Sprintf("%d of %d nodes are unhealthy, limits.unhealthy is %s", is.Unhealthy, is.Nodes, p.Config.Limits.Unhealthy)
	if !p.Config.Limits.Unhealthy.Exceeded(is.Unhealthy, is.Nodes) {
		why = strings.Join(strings.Fields("the repair "+was.Trial+" that the half-open breaker allowed has not helped"), " ")
	}
	return fmt.Sprintf("the breaker of %s is open: %s; no disruptive repair begins", scope, why)
}
