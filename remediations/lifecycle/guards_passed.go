package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// The functions of this file return the messages of guards for repairs that they do not hold. Each
// message has the facts that its guard compared.

func saying(what string) func(*Candidate) string {
	return func(*Candidate) string { return what }
}

func notExcluded(*Candidate) string { return "the node has no label " + remediations.ExcludeLabel }

func notPaused(c *Candidate) string {
	if p, err := remediations.ParsePause(c.Node.Annotations[remediations.PauseKey]); err == nil {
		return "the pause ended at " + moment(p.Until, c.Now)
	}
	return "the node is not paused"
}

func staying(c *Candidate) string {
	if overdue := c.Config.HoldWhen.Claim(c.Node, c.Journal, c.Now).Overdue; overdue != "" {
		return "the node's marks are too old to hold the repair: " + overdue
	}
	return fmt.Sprintf("the node has none of the %d marks that other systems use to claim a node", len(c.Config.HoldWhen.OrShipped()))
}

func notCordoned(c *Candidate) string {
	switch {
	case !c.Node.Spec.Unschedulable:
		return "the node is not cordoned"
	case c.cordonedByUs():
		return "this repair cordoned the node"
	}
	return fmt.Sprintf("the node is cordoned, and policy %s repairs cordoned nodes", c.Policy.Name)
}

func confirmed(c *Candidate) string {
	switch {
	case c.Request != "":
		return "a person requested the repair, so it needs no alert"
	case c.Verdict.Gone:
		return "no Alertmanager has the alert any more"
	case !c.Verdict.StartsAt.IsZero():
		return "according to Alertmanager, the alert has been firing since " + moment(c.Verdict.StartsAt, c.Now)
	}
	return "Alertmanager has the alert"
}

func answered(c *Candidate) string {
	n := 0
	for _, r := range c.Snapshot.Replicas {
		if r.Err == nil {
			n++
		}
	}
	said := fmt.Sprintf("%d of %d Alertmanagers answered", n, len(c.Snapshot.Replicas))
	if c.Config.Watchdog {
		said += ", and the Watchdog alert is firing"
	}
	return said
}

func leasesFresh(c *Candidate) string {
	if h := c.Heartbeats; h.Fleet > 0 {
		return fmt.Sprintf("%d of %d node leases are stale, in a random sample of %d nodes; %d%% would be too many", h.Stale, h.Nodes, h.Fleet, signs.StalePercent)
	}
	return fmt.Sprintf("%d of %d node leases are stale; %d%% would be too many", c.Heartbeats.Stale, c.Heartbeats.Nodes, signs.StalePercent)
}

func notResolved(c *Candidate) string {
	if c.Request != "" {
		return "a person requested the repair, so the end of an alert does not end it"
	}
	return "the alert has not ended"
}

func witnessed(c *Candidate) string {
	asked := c.Signs()
	if len(asked) == 0 {
		if c.Request != "" {
			return "a person requested the repair, so no witness is needed"
		}
		return fmt.Sprintf("policy %s acts on the alert alone (witness: none)", c.Policy.Name)
	}
	return strings.Join(signs.Weigh(asked, c.seen(), c.Read, c.Now.Add(-witnessKept), c.Now).Saw, "; ")
}

// unread returns the signs that must be read first, or nil if the answer is known.
func (c *Candidate) unread() (names []string) {
	w := signs.Weigh(c.Signs(), c.seen(), c.Read, c.Now.Add(-witnessKept), c.Now)
	if w.Ill || !w.Unread {
		return nil
	}
	for _, s := range signs.ToRead(c.Signs(), c.seen()) {
		names = append(names, s.String())
	}
	return names
}

func nodeAge(c *Candidate) string {
	return fmt.Sprintf("the node was created at %s; limits.startupGrace is %s", moment(c.Node.CreationTimestamp.Time, c.Now), text.Duration(c.Config.Limits.StartupGrace))
}

func alertAge(c *Candidate) string {
	if c.Request != "" {
		return "a person requested the repair, so it does not wait for an alert"
	}
	return fmt.Sprintf("the alert has been firing since %s; policy %s waits for %s", moment(c.firingSince(), c.Now), c.Policy.Name, text.Duration(c.Policy.For))
}

func fleetHealth(c *Candidate) string {
	if c.Remediation().ClusterWide {
		return "the step is for faults that many nodes have"
	}
	unhealthy, nodes := c.Fleet.Health()
	said := fmt.Sprintf("%d of %d nodes are unhealthy, limits.unhealthy is %s", unhealthy, nodes, c.Config.Limits.Unhealthy)
	zone := c.Config.Zone(c.Node)
	if unhealthy, nodes, ok := c.Fleet.HealthIn(zone); ok {
		said += fmt.Sprintf("; in zone %s %d of %d", zone, unhealthy, nodes)
	}
	for _, scope := range c.Fleet.BreakersFor(c.Config.Zone(c.Node)) {
		said += fmt.Sprintf("; the breaker of %s is half-open, and this node is repaired first", scope)
	}
	return said
}

func insideWindow(c *Candidate) string {
	if len(c.Config.Windows) == 0 {
		return "no windows are configured"
	}
	return "one of the configured windows is open"
}

func cooled(c *Candidate) string {
	e := c.lastRepair()
	switch {
	case c.Acted():
		return "this repair has begun already"
	case e == nil:
		return fmt.Sprintf("policy %s has not repaired the node before; its cooldown is %s", c.Policy.Name, text.Duration(c.Policy.Cooldown))
	}
	return fmt.Sprintf("the last repair by policy %s ended at %s; its cooldown is %s", e.Policy, moment(e.Ended, c.Now), text.Duration(c.Policy.Cooldown))
}

func repairsLeft(c *Candidate) string {
	l := c.Config.Limits
	begun, _ := c.begun()
	return fmt.Sprintf("%s began on this machine within %s, limits.repairsPerNode is %d", text.Count(begun, "repair"), text.Duration(l.RepairsWindow), l.RepairsPerNode)
}

func policyWorks(c *Candidate) string {
	return fmt.Sprintf("%s in a row by policy %s failed; %d would stop the policy", text.Count(c.Ledger.Status.Exhausted[c.Policy.Name], "repair"), c.Policy.Name, ledger.FailingAfter)
}

func controlPlaneFree(c *Candidate) string {
	if !remediations.ControlPlane(c.Node) {
		return "the node is not a control-plane node"
	}
	others, need, all := c.Fleet.QuorumWithout(c.Node)
	return fmt.Sprintf("%d of the other %s are Ready, etcd needs %d of %d", others, fleet.Peers(c.Node), need, all)
}

func wideEnough(c *Candidate) string {
	if !c.Remediation().ClusterWide {
		return "the step changes only one node"
	}
	return fmt.Sprintf("%d of %d nodes have a confirmed alert of policy %s", c.sick(), c.Fleet.Size(), c.Policy.Name)
}

func belowLimit(c *Candidate) string {
	all := c.Fleet.Shares(c.Config, c.Node, c.provider(), c.Policy.Mode == remediations.ModeObserve)
	said := make([]string, len(all))
	for i, s := range all {
		said[i] = s.String()
	}
	return strings.Join(said, "; ")
}

func approved(c *Candidate) string {
	switch {
	case !c.Policy.Approval:
		return fmt.Sprintf("policy %s needs no approval", c.Policy.Name)
	case c.Acted():
		return "this repair has begun already"
	}
	return "a person approved the repair"
}

func moment(at, now time.Time) string {
	said := at.UTC().Format(time.RFC3339)
	age := now.Sub(at)
	if age < 0 {
		return said
	}
	return fmt.Sprintf("%s (%s ago)", said, text.Age(age))
}
