package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/routing"
)

// clusterWide holds a step that changes the whole cluster, unless enough nodes have the policy's
// alert: one bad node never causes such a step. If too few nodes have it, or the last such step was
// too recent, the plan may continue with another step. If another repair is changing the cluster
// now, the step waits.
func clusterWide(c *Candidate) *Finding {
	if !c.Remediation().ClusterWide {
		return nil
	}
	if i := slices.IndexFunc(c.Ledger.Slots, func(s ledger.Slot) bool { return s.Wide && s.Repair != c.Own }); i >= 0 {
		s := c.Ledger.Slots[i]
		return &Finding{Message: fmt.Sprintf("repair %s of node %s by policy %s changes the whole cluster; only one such repair runs at a time", s.Repair, s.Node, s.Policy), Fleetwide: true, Concern: remediations.Concern{Policy: s.Policy}}
	}
	if last := c.Ledger.LastWide(c.Own); c.Now.Before(last.At.Add(ledger.WideApart)) {
		return &Finding{Message: fmt.Sprintf("repair %s changed the whole cluster at %s; Drydock does that at most once in %s", last.Repair, last.At.Format(time.RFC3339), text.Duration(ledger.WideApart)), Pass: true}
	}
	limit, all := c.Config.ClusterWide, c.Fleet.Size()
	sick, least := c.sick(), max(2, limit.MinNodes)
	if sick < least || !limit.MinShare.Reached(sick, all) {
		return &Finding{Message: fmt.Sprintf("%d of %d nodes have a confirmed alert of policy %s; %s changes the whole cluster, so at least %d nodes and %s must have this alert", sick, all, c.Policy.Name, c.Step.Name, least, limit.MinShare), Pass: true}
	}
	return nil
}

// sick counts the nodes whose alert of this policy allows a repair.
func (c *Candidate) sick() int {
	nodes := map[string]bool{}
	for _, r := range c.Snapshot.Replicas {
		for fingerprint, a := range r.Alerts {
			route, _ := routing.Of(c.Config, a.Labels, c.Fleet.Node)
			if route.Policy == c.Policy && !nodes[route.Node] && c.Snapshot.VerdictFor(fingerprint, c.Config, "").Reason == "" {
				nodes[route.Node] = true
			}
		}
	}
	return len(nodes)
}
