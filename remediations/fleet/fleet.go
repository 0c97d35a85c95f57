package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Fleet has the facts about all nodes that a decision about one node needs. Each pass builds it,
// and methods like Occupy update it during the pass.
type Fleet struct {
	nodes int
	// occupied has the nodes whose repairs count against the limits: disruptive repairs that run,
	// and those that wait while their node is drained. In observe mode, nodes that would be
	// repaired now are here, too.
	occupied map[string]place
	// leading has the repairs of mesh leaders, by the node with the record. In observe mode, those
	// that would begin are here, too.
	leading map[string]leading
	zones   map[string]*census
	pools   map[string]int
	total   census

	roster *Roster

	quorums quorums
	tried   map[string]tried

	// ExpectedGPUs has how many GPUs each node should offer.
	ExpectedGPUs map[string]int
	// trying has the node of each repair that this pass began, by id. The roster does not have
	// these records yet.
	trying map[string]string
	// Breakers has those that are not closed, by scope: the cluster or one zone. Unjudged means
	// that they were not evaluated, because the fleet could not be observed.
	Breakers map[string]ledger.Breaker
	Unjudged bool
	// windowOpen means that disruptive repairs may begin now, or else at nextWindow.
	windowOpen bool
	nextWindow time.Time
}

// place is where a repair counts against the limits. wouldBe marks one that observe mode only
// simulates: it counts against other simulated repairs, never against a real one.
//
// slotZone and slotPool are from when the repair took its slot or drained the node. If the labels
// have changed since, the node counts in both zones and both pools.
type place struct {
	zone, pool         string
	slotZone, slotPool string
	// provider is that of the current step or, if that step needs none, of the next one that does.
	provider              string
	controlPlane, wouldBe bool
	// parked means that the node is drained and waits for its next step. next means that the repair
	// is about to begin and has no slot yet.
	parked, next bool
}

// begun adds the zone, pool and role that the node had when it was drained, from the intent.
func (p place) begun(r *remediations.Record) place {
	if r != nil && r.Intent != nil {
		i := r.Intent
		p.slotZone, p.slotPool, p.controlPlane = i.Zone, i.Pool, p.controlPlane || i.ControlPlane
	}
	return p
}

func (p place) inZone(zone string) bool { return p.zone == zone || p.slotZone == zone }

func (p place) inPool(pool string) bool { return p.pool == pool || p.slotPool == pool }

// New returns the fleet of these Nodes, without a roster of earlier passes. firing reports whether
// an alert about the node is firing.
func New(c *remediations.Config, nodes []*corev1.Node, l *ledger.Ledger, firing func(node string) bool, now time.Time) *Fleet {
	r := NewRoster(c)
	r.Read(nodes)
	since := map[string]time.Time{}
	for _, n := range nodes {
		if firing(n.Name) {
			since[n.Name] = now
		}
	}
	r.Fire(since)
	return r.Fleet(l, false, now)
}

// Fleet returns the facts about all nodes. The result is valid until the roster changes. If blind
// is true, the fleet cannot be observed, and the breakers keep their state from the ledger.
func (r *Roster) Fleet(l *ledger.Ledger, blind bool, now time.Time) *Fleet {
	r.age(now)
	f := &Fleet{
		nodes: len(r.members), roster: r, occupied: map[string]place{}, leading: map[string]leading{}, zones: r.zones, pools: r.pools, total: r.total,
		quorums: r.quorums, tried: r.trials(), ExpectedGPUs: r.expectedGPUs(l),
	}
	for name, m := range r.occupying {
		if remediations.InFlightAt(m.from, m.until, now) {
			p := m.place.begun(m.own)
			p.provider = r.providerOfRecord(m.own, m.Node)
			f.occupied[name] = p
		}
	}
	for name, m := range r.leading {
		f.leadByRecord(name, m.leader, now)
	}
	for _, s := range l.Slots {
		if s.Kind == remediations.KindLocation {
			f.leadBySlot(s)
			continue
		}
		p, ok := f.occupied[s.Node]
		m := r.members[s.Node]
		if !ok || p.wouldBe {
			p = place{}
			if m != nil {
				p = m.place
				p.wouldBe = false
			}
		}
		p.parked = false // a repair with a slot is in flight
		p.slotZone, p.slotPool, p.controlPlane = s.Zone, s.Pool, p.controlPlane || s.ControlPlane
		p.provider = r.providerOf(l, s, m)
		f.occupied[s.Node] = p
	}
	f.Judge(l, blind, now)
	f.windowOpen, f.nextWindow = r.window.at(r.config, now)
	return f
}

// Node returns the Node with exactly that name, or nil.
func (f *Fleet) Node(name string) *corev1.Node { return f.roster.Node(name) }

// OfMachine returns the Node with this provider ID, or nil. A Node without one matches by its name.
func (f *Fleet) OfMachine(node, providerID string) *corev1.Node {
	for _, m := range f.roster.members {
		if id := m.Node.Spec.ProviderID; (id != "" && id == providerID) || (id == "" && m.Node.Name == node) {
			return m.Node
		}
	}
	return nil
}

// Size returns the number of Nodes.
func (f *Fleet) Size() int { return f.nodes }

// Health counts only nodes that are older than limits.startupGrace and not excluded.
func (f *Fleet) Health() (unhealthy, nodes int) { return f.total.unhealthy, f.total.nodes }

// HealthIn is Health for one zone. ok is false if the zone has no Node.
func (f *Fleet) HealthIn(zone string) (unhealthy, nodes int, ok bool) {
	z := f.zones[zone]
	if z == nil {
		return 0, 0, false
	}
	return z.unhealthy, z.nodes, true
}

// Window reports whether disruptive repairs may begin now, or when they may.
func (f *Fleet) Window() (open bool, next time.Time) { return f.windowOpen, f.nextWindow }

// GPUsVersion changes whenever ExpectedGPUs changes.
func (f *Fleet) GPUsVersion() int { return f.roster.gpusVersion }

// Occupy counts a repair that this pass has begun, or would have begun in observe mode. provider is
// from Config.ProviderAhead.
func (f *Fleet) Occupy(c *remediations.Config, n *corev1.Node, provider string, wouldBe bool) {
	if _, ok := f.occupied[n.Name]; ok && wouldBe {
		return // a repair in flight counts until its end is written
	}
	f.occupied[n.Name] = place{zone: c.Zone(n), pool: c.Pool(n), provider: provider, controlPlane: remediations.ControlPlane(n), wouldBe: wouldBe}
}

// Next counts a repair that only waits for one more reading. So the repair of a younger fault
// cannot begin first and use up the limit.
func (f *Fleet) Next(c *remediations.Config, n *corev1.Node, provider string, wouldBe bool) {
	was, occupied := f.occupied[n.Name]
	f.Occupy(c, n, provider, wouldBe)
	p := f.occupied[n.Name]
	p.next = !occupied || was.distance() > 0
	f.occupied[n.Name] = p
}

// Vacate stops counting the node's repair.
func (f *Fleet) Vacate(node string) { delete(f.occupied, node) }

// ControlPlaneBusy returns why a control-plane node must wait: another one is under repair, or too
// few of the others are Ready. It is empty for other nodes.
func (f *Fleet) ControlPlaneBusy(n *corev1.Node) string {
	if !remediations.ControlPlane(n) {
		return ""
	}
	for name, p := range f.occupied {
		if name != n.Name && p.controlPlane && !p.wouldBe && f.beside(p, n.Name) {
			return fmt.Sprintf("control-plane node %s is under repair; control-plane nodes are repaired one at a time", name)
		}
	}
	if others, need, all := f.QuorumWithout(n); others < need {
		return fmt.Sprintf("only %d of the other %s are Ready, etcd needs %d of %d", others, Peers(n), need, all)
	}
	return ""
}

// Peers names, in messages, the nodes that form a quorum with a control-plane node.
func Peers(n *corev1.Node) string {
	if remediations.Etcd(n) {
		return "nodes of etcd"
	}
	return "control-plane nodes"
}

// QuorumWithout returns how many other members are Ready, how many etcd needs, and how many there
// are. Nodes with the etcd role form their own quorum, because a node without an etcd member cannot
// replace one.
func (f *Fleet) QuorumWithout(n *corev1.Node) (others, need, all int) {
	q := f.quorums.of(n)
	others = len(q.ready)
	if q.ready[n.Name] {
		others--
	}
	return others, q.all/2 + 1, q.all
}

// window is a cache, because Config.InWindow takes longer than everything else in a pass without
// changes.
type window struct{ closed, next time.Time }

func (w *window) at(c *remediations.Config, now time.Time) (open bool, next time.Time) {
	if !now.Before(w.closed) && now.Before(w.next) {
		return false, w.next
	}
	open, next = c.InWindow(now)
	*w = window{now.Round(0), next}
	return open, next
}
