package engine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// inFlight returns the other Nodes whose record in the API server shows a repair in flight.
func (w *world) inFlight(except string) (out []*corev1.Node) {
	for _, n := range w.nodes {
		if r := w.record(n.Name); n.Name != except && r != nil && !isPlanted(r.ID) && r.Phase.InFlight() && time.Since(r.Deadline) < remediations.OverdueFor {
			out = append(out, n)
		}
	}
	return out
}

// parked returns the other Nodes that have been Pending after their drain for long enough that each
// cache shows it. Drydock has cordoned them. They count against a Node that is not drained yet.
func (w *world) parked(except string) (out []*corev1.Node) {
	for _, n := range w.nodes {
		r := w.record(n.Name)
		if n.Name != except && isParked(n) && !isPlanted(r.ID) && time.Since(r.Since) > behind && time.Now().Before(r.Deadline) {
			out = append(out, n)
		}
	}
	return out
}

func isParked(n *corev1.Node) bool {
	j := modelRegistry.ReadJournal(n)
	r := j.Record
	return j.Malformed == nil && r != nil && r.Phase == remediations.PhasePending && n.Spec.Unschedulable && r.Drained() &&
		slices.ContainsFunc(r.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon })
}

// checkLimits checks invariant 3 by counting the repairs that are really in flight. A share may be
// of the fleet as it is, or as the engine's cache has it: a Node may have appeared or gone a moment
// ago.
func (w *world) checkLimits(i *instance, cur *corev1.Node, next *remediations.Record) {
	l, flying := i.config.Limits, w.inFlight(cur.Name)
	busy := flying
	if was := w.record(cur.Name); !isParked(cur) && (was == nil || !was.Phase.InFlight()) {
		busy = append(slices.Clone(flying), w.parked(cur.Name)...)
	}
	count := func(in []*corev1.Node, same func(*corev1.Node) bool) (n int) {
		for _, o := range in {
			if same(o) {
				n++
			}
		}
		return n
	}
	view := make([]*corev1.Node, 0, len(i.view))
	for _, n := range i.view {
		view = append(view, n)
	}
	all := make([]*corev1.Node, 0, len(w.nodes))
	for _, n := range w.nodes {
		all = append(all, n)
	}
	limit := func(what string, q remediations.Quantity, same func(*corev1.Node) bool) {
		most := max(q.Of(count(all, same)), q.Of(count(view, same)))
		if n := count(busy, same) + 1; n > most {
			w.fail("3: %d in flight in the %s with the intent on %s, the limit is %s", n, what, cur.Name, q)
		}
	}
	sameLabel := func(key string) func(*corev1.Node) bool {
		return func(n *corev1.Node) bool { return n.Labels[key] == cur.Labels[key] }
	}
	limit("cluster", l.Concurrent, func(*corev1.Node) bool { return true })
	limit("zone", l.ConcurrentPerZone, sameLabel("zone"))
	limit("pool", l.ConcurrentPerPool, sameLabel("pool"))
	w.checkProvider(i, cur, busy)
	if remediations.ControlPlane(cur) {
		if count(busy, remediations.ControlPlane) > 0 {
			w.fail("3: another control-plane node is in flight beside the intent on %s", cur.Name)
		}
		need := count(all, remediations.ControlPlane)/2 + 1
		if w.controlPlaneLeft(cur.Name, time.Now()) < need && w.controlPlaneLeft(cur.Name, time.Now().Add(-behind)) < need {
			w.fail("3: the intent on %s leaves fewer than %d control-plane nodes", cur.Name, need)
		}
	}
	w.checkSlot(cur, next)
}

// checkSlot checks the fence: a Node has its slot in the ledger before its intent. If two engines
// begin on one Node at once, the slot may have the other's name: the Node's resourceVersion decides
// between them.
func (w *world) checkSlot(cur *corev1.Node, next *remediations.Record) {
	l := w.book()
	if l == nil {
		return // a person deleted or damaged the ledger a moment ago
	}
	has := func(s ledger.Slot) bool { return s.Kind == "" && s.Node == cur.Name }
	if !slices.ContainsFunc(l.Slots, has) {
		w.fail("3: the intent %s has no slot in the ledger", next.Intent.ID)
	}
	if l.Failing(next.Policy) {
		w.fail("PolicyFailing: the intent %s of policy %s, which is stopped", next.Intent.ID, next.Policy)
	}
}

// controlPlaneLeft counts the Ready control-plane nodes other than this one at that time.
func (w *world) controlPlaneLeft(except string, then time.Time) int {
	latest := map[string]*corev1.Node{}
	for _, e := range w.events {
		if !e.at.After(then) {
			latest[e.name] = e.node
		}
	}
	left := 0
	for name, n := range latest {
		if n == nil || name == except || !remediations.ControlPlane(n) {
			continue
		}
		if c := remediations.ReadyCondition(n); c != nil && c.Status == ready {
			left++
		}
	}
	return left
}

// judge notes, after every change of a Node's health, since when a scope exceeds the limit of its
// breaker. Excluded nodes are outside of all counts.
func (w *world) judge() {
	type census struct{ nodes, down int }
	zones, total := map[string]census{}, census{}
	for _, n := range w.nodes {
		if remediations.Excluded(n) {
			continue
		}
		down := 1
		if c := remediations.ReadyCondition(n); c != nil && c.Status == ready {
			down = 0
		}
		z := zones[n.Labels["zone"]]
		zones[n.Labels["zone"]] = census{z.nodes + 1, z.down + down}
		total = census{total.nodes + 1, total.down + down}
	}
	over := func(c census) bool { return c.down >= 2 && w.config.Limits.Unhealthy.Exceeded(c.down, c.nodes) }
	note := func(scope string, is bool) {
		if !is {
			delete(w.overSince, scope)
		} else if _, was := w.overSince[scope]; !was {
			w.overSince[scope] = time.Now()
		}
	}
	// One zone may be left out of the cluster's count. So the cluster exceeds its limit only if it
	// does so without any one of its zones.
	cluster := over(total)
	for zone, z := range zones {
		note("zone/"+zone, len(zones) > 1 && over(z))
		cluster = cluster && (len(zones) < 2 || over(census{total.nodes - z.nodes, total.down - z.down}))
	}
	note(ledger.ScopeCluster, cluster)
}

// checkWide checks a step that changes the whole cluster. Enough nodes must have the fault, now or
// at the last look, and no other repair may have changed the cluster a short while ago.
func (w *world) checkWide(i *instance, next *remediations.Record) {
	sick := 0
	for _, m := range w.machines {
		quiet := m.silenced && m.silencedHere == 0 // an engine that has not read of a silence counts the node
		if (m.faulty() || m.firing() || time.Since(m.since) < lookedFor+alertTail) && !quiet {
			sick++
		}
	}
	wide := i.config.ClusterWide
	if sick < wide.MinNodes || sick*100 < len(w.nodes)*wide.MinShare.Value {
		w.fail("ClusterWide: %s of %s, and %d of %d nodes are ill", next.Step.Name, next.ID, sick, len(w.nodes))
	}
	if w.wide.Repair != "" && w.wide.Repair != next.ID && time.Since(w.wide.At)+truncated < time.Hour {
		w.fail("ClusterWide: %s of %s, and repair %s changed the whole cluster at %s", next.Step.Name, next.ID, w.wide.Repair, w.wide.At)
	}
	w.wide = ledger.Begun{Repair: next.ID, At: time.Now()}
}

// checkBreaker checks the storm guard, once against the real state and once against the ledger.
func (w *world) checkBreaker(cur *corev1.Node, next *remediations.Record) {
	for _, scope := range []string{ledger.ScopeCluster, "zone/" + cur.Labels["zone"]} {
		if since, over := w.overSince[scope]; over && time.Since(since) > behind {
			w.fail("FleetUnhealthy: an intent on %s, and %s is in a storm since %s", cur.Name, scope, since)
		}
		l := w.book()
		if l == nil {
			continue
		}
		switch b := l.Status.Breakers[scope]; b.State {
		case ledger.BreakerClosed:
		case ledger.BreakerOpen:
			w.fail("FleetUnhealthy: an intent on %s while the breaker of %s is open", cur.Name, scope)
		case ledger.BreakerHalfOpen:
			others := w.inFlight(cur.Name)
			others = slices.DeleteFunc(others, func(n *corev1.Node) bool {
				wide := modelConfig().Remediation(w.record(n.Name).Step.Name).ClusterWide // no breaker holds such a step
				return wide || (scope != ledger.ScopeCluster && n.Labels["zone"] != cur.Labels["zone"])
			})
			if len(others) > 0 || b.Trial != next.ID {
				w.fail("FleetUnhealthy: %s on %s beside the trial %s of the half-open breaker of %s", next.ID, cur.Name, b.Trial, scope)
			}
		}
	}
}
