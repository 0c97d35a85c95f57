package remediations

import (
	"fmt"
	"slices"
	"time"
)

// wideApart is the least time between two repairs that change the whole cluster.
const wideApart = time.Hour

// rolloutRestart restarts a DaemonSet's pods on all nodes, as it rolls out a new version.
var rolloutRestart = Remediation{
	Name: "rollout-restart", Verb: "restart, in the whole cluster, the DaemonSet that fails on", Disruptive: true, Once: true, LooksFirst: true,
	PassedOver: true, ClusterWide: true, RenewsLease: true, AsksPods: true, Wait: 10 * time.Minute, Attempts: 1, Invasive: 6, Proof: succeeded,
}

// applyCNI applies the network's own manifest anew, never an older one than is installed.
var applyCNI = Remediation{
	Name: "apply-cni", Verb: "apply, in the whole cluster, the network manifest that is missing on", Disruptive: true, Once: true, LooksFirst: true,
	PassedOver: true, ClusterWide: true, RenewsLease: true, AsksPods: true, Wait: 10 * time.Minute, Attempts: 1, Invasive: 7, Proof: succeeded,
}

// clusterWide: one bad node never changes the whole cluster. What is not due here is passed over, where the plan goes on;
// what another repair is doing to the cluster this moment is waited for.
func clusterWide(c *Candidate) *Finding {
	if !c.Remediation().ClusterWide {
		return nil
	}
	if i := slices.IndexFunc(c.Ledger.Slots, func(s Slot) bool { return s.Wide && s.Repair != c.Own }); i >= 0 {
		s := c.Ledger.Slots[i]
		return &Finding{Message: fmt.Sprintf("repair %s of node %s by policy %s is changing the whole cluster; one does so at a time", s.Repair, s.Node, s.Policy), Fleetwide: true}
	}
	if last := c.Ledger.lastWide(c.Own); !last.At.IsZero() && c.Now.Before(last.At.Add(wideApart)) {
		return &Finding{Message: fmt.Sprintf("repair %s changed the whole cluster at %s, which is done once in %s at most", last.Repair, last.At.Format(time.RFC3339), wideApart), Pass: true}
	}
	limit, all := c.Config.ClusterWide, c.Fleet.nodes
	sick, least := c.sick(), max(2, limit.MinNodes)
	if sick < least || !limit.MinShare.reached(sick, all) {
		return &Finding{Message: fmt.Sprintf("%d of %d nodes have a confirmed alert of policy %s, and %s changes the whole cluster: it takes %d of them, and %s", sick, all, c.Policy.Name, c.Step.Name, least, limit.MinShare), Pass: true}
	}
	return nil
}

// sick counts the nodes that have an alert of the candidate's policy which the Alertmanagers confirm.
func (c *Candidate) sick() int {
	nodes := map[string]bool{}
	for _, r := range c.Word.Replicas {
		for fingerprint, a := range r.Alerts {
			route, why := c.Config.Route(a.Labels, c.Fleet.roster.Node)
			if why == MisrouteNone && route.Policy == c.Policy && !nodes[route.Node] && c.Word.About(fingerprint, c.Config, "").Reason == "" {
				nodes[route.Node] = true
			}
		}
	}
	return len(nodes)
}

// widened counts a repair that changes the whole cluster; of each repair the last time.
func (l *Ledger) widened(repair string, when time.Time) {
	l.Wide = slices.DeleteFunc(l.Wide, func(b Begun) bool { return b.Repair == repair })
	l.Wide = append(l.Wide, Begun{Repair: repair, At: when})
}

// lastWide is when another repair than the one named last changed the whole cluster.
func (l *Ledger) lastWide(except string) (last Begun) {
	for _, b := range l.Wide {
		if b.Repair != except && b.At.After(last.At) {
			last = b
		}
	}
	return last
}

// rebuildWide is the part of RebuildLedger that speaks of the whole cluster. An ended repair counts from its end: when it
// took the step is not known any more.
func (l *Ledger) rebuildWide(c *Config, j Journal) {
	wide := func(done string) bool { return c.Remediation(StepName(done)).ClusterWide }
	for _, e := range j.History {
		if slices.ContainsFunc(e.Steps, wide) {
			l.widened(e.ID, e.Ended)
		}
	}
	if r := j.Record; r != nil && r.Intent != nil && slices.ContainsFunc(r.Done, wide) {
		l.widened(r.ID, r.Intent.At)
	}
}
