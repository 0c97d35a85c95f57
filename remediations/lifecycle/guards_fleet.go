package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func fleetUnhealthy(c *Candidate) *Finding {
	if c.Remediation().ClusterWide { // what many nodes have is what those are for
		return nil
	}
	for _, scope := range c.Fleet.BreakersFor(c.Config.Zone(c.Node)) {
		if f := c.brokenBy(scope, c.Fleet.Breakers[scope]); f != nil {
			return f
		}
	}
	return nil
}

// brokenBy asks one breaker that is not closed.
func (c *Candidate) brokenBy(scope string, b ledger.Breaker) *Finding {
	if b.State == ledger.BreakerHalfOpen {
		if b.Trial == c.Own {
			return nil
		}
		first := c.Fleet.NodeOf(b.Trial)
		if b.Trial == "" {
			if first = c.Fleet.Busy(scope, c.Node.Name); first == "" {
				return nil
			}
		}
		return Because("the breaker of %s is half-open: node %s is repaired first, and the others wait for how that ends", scope, cmp.Or(first, "(its Node is gone)"))
	}
	if calm := b.Quiet.Add(c.Config.Limits.StormCooldown); b.Quiet.Before(remediations.Instant(c.Now)) {
		return &Finding{Message: fmt.Sprintf("the breaker of %s is open: the storm was last seen at %s, and limits.stormCooldown is %s", scope, b.Quiet.Format(time.RFC3339), c.Config.Limits.StormCooldown), Until: calm}
	}
	return &Finding{Message: StormGoesOn(c.Config, scope, b.Unhealthy, b.Nodes)}
}

// StormGoesOn is what the open breaker of a scope says in which so many of its nodes are unhealthy.
func StormGoesOn(c *remediations.Config, scope string, unhealthy, nodes int) string {
	return fmt.Sprintf("the breaker of %s is open: %d of %d nodes are unhealthy, limits.unhealthy is %s; it lets go %s after that ends",
		scope, unhealthy, nodes, c.Limits.Unhealthy, c.Limits.StormCooldown)
}

func outsideWindow(c *Candidate) *Finding {
	open, next := c.window()
	if open {
		return nil
	}
	return &Finding{Message: "outside all of the configured windows", Until: next}
}

// window says whether a window is open; where there is a fleet, it was looked up for the whole pass.
func (c *Candidate) window() (open bool, next time.Time) {
	if c.Fleet == nil {
		return c.Config.InWindow(c.Now)
	}
	return c.Fleet.Window()
}

func controlPlaneBusy(c *Candidate) *Finding {
	if why := c.Fleet.ControlPlaneBusy(c.Node); why != "" {
		return &Finding{Message: why}
	}
	return nil
}

func atLimit(c *Candidate) *Finding {
	if why := c.Fleet.AtLimit(c.Config, c.Node, c.Policy.Mode == remediations.ModeObserve); why != "" {
		return &Finding{Message: why}
	}
	return nil
}
