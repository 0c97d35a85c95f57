package lifecycle

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func fleetUnhealthy(c *Candidate) *Finding {
	if c.Remediation().ClusterWide { // these steps are meant for faults of many nodes
		return nil
	}
	zone := c.Config.Zone(c.Node)
	for _, scope := range c.Fleet.BreakersFor(zone) {
		if f := c.brokenBy(scope, c.Fleet.Breakers[scope]); f != nil {
			if scope != ledger.ScopeCluster {
				f.Concern.Zone = zone
			}
			return f
		}
	}
	return nil
}

// brokenBy expects a breaker that is not closed. scope is the cluster or a zone.
func (c *Candidate) brokenBy(scope string, b ledger.Breaker) *Finding {
	if b.State == ledger.BreakerHalfOpen {
		if b.Trial == c.Own {
			return nil
		}
		node := c.Fleet.NodeOf(b.Trial)
		if b.Trial == "" {
			if node = c.Fleet.Busy(scope, c.Node.Name); node == "" {
				return nil
			}
		}
		first := "node " + node
		if node == "" { // the machine is being replaced, and its Node is gone
			first = "the machine of repair " + b.Trial
		}
		return Because("the breaker of %s is half-open: %s is repaired first, and the others wait for the result", scope, first)
	}
	if calm := b.Quiet.Add(c.Config.Limits.StormCooldown); b.Quiet.Before(remediations.Instant(c.Now)) {
		return &Finding{Message: fmt.Sprintf("the breaker of %s is open: too many nodes were unhealthy until %s, and limits.stormCooldown is %s", scope, b.Quiet.Format(time.RFC3339), text.Duration(c.Config.Limits.StormCooldown)), Until: calm}
	}
	return &Finding{Message: StormGoesOn(c.Config, scope, b.Unhealthy, b.Nodes)}
}

// StormGoesOn returns the message that the breaker is open because this many nodes are still
// unhealthy.
func StormGoesOn(c *remediations.Config, scope string, unhealthy, nodes int) string {
	return fmt.Sprintf("the breaker of %s is open: %d of %d nodes are unhealthy (limits.unhealthy: %s); disruptive repairs start again %s after the number has fallen",
		scope, unhealthy, nodes, c.Limits.Unhealthy, text.Duration(c.Limits.StormCooldown))
}

func outsideWindow(c *Candidate) *Finding {
	open, next := c.window()
	if open {
		return nil
	}
	return &Finding{Message: "outside all of the configured windows", Until: next}
}

// window uses the result that a Fleet has computed once for all nodes.
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
	if s := c.Fleet.Spent(c.Config, c.Node, c.provider(), c.Policy.Mode == remediations.ModeObserve); s != nil {
		return &Finding{Message: s.Why(), Concern: s.Concern}
	}
	return nil
}

// commonCause holds nodes that got alerts of one policy within a short time, because one fault, for
// example a storage outage, has probably caused them. One node is repaired first, to see whether
// that helps. The guard is near the end of the table, so that no node waits for a node that another
// guard holds.
func commonCause(c *Candidate) *Finding {
	if c.Alert == nil || c.Acted() {
		return nil
	}
	common := c.Fleet.Common(c.Policy.Name, c.Node.Name)
	if common == nil || common.Tried == "" || common.Tried == c.Node.Name {
		return nil
	}
	said := fmt.Sprintf("policy %s got alerts about %d nodes within %s (%s), so limits.commonCause treats them as one fault", c.Policy.Name, common.Count, text.Duration(c.Config.Limits.CommonCause.Within), common.Names)
	if common.Failed {
		return Because("%s; the repair of node %s did not help, so a person must find the cause", said, common.Tried)
	}
	return Because("%s; node %s is repaired first, and the others wait until its alert has ended", said, common.Tried)
}

func noCommonCause(c *Candidate) string {
	return fmt.Sprintf("no other node with the same fault is repaired first; limits.commonCause is %s", c.Config.Limits.CommonCause)
}
