package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Fleet is what a decision about one node must know of all others. It is made once a pass, from the Nodes and the
// ledger, and Occupy keeps it true while a pass goes on.
type Fleet struct {
	nodes int
	// occupied holds every node with a disruptive repair in Acting or Verifying, by the ledger or by its own record, those that are
	// parked and, in observe mode, those that would be repaired now.
	occupied map[string]place
	// leading holds, by the node on which it is recorded, every repair of a mesh leader in flight, and would-be ones.
	leading map[string]leading
	zones   map[string]*census
	pools   map[string]int
	total   census

	// roster has the Nodes themselves.
	roster *Roster

	quorums quorums
	tried   map[string]tried

	// ExpectedGPUs are how many GPUs each GPU node has by its label, or had before.
	ExpectedGPUs map[string]int
	// trying are the nodes of the repairs that this pass began, by repair.
	trying map[string]string
	// Breakers are those in force, by scope. Unjudged: they stand still, because Drydock was blind when it counted.
	Breakers map[string]ledger.Breaker
	Unjudged bool
	// windowOpen and nextWindow say whether disruptive repairs may begin now, and when they may if not.
	windowOpen bool
	nextWindow time.Time
}

// place is where an occupied node stands. wouldBe marks a repair that observe mode only speaks of: it counts against
// other would-be repairs, never against a real one. slotZone and slotPool are where the node stood when its repair took its
// slot, or drained it: a node that was relabelled since counts in both.
type place struct {
	zone, pool            string
	slotZone, slotPool    string
	controlPlane, wouldBe bool
	// parked: its repair is drained and waits. next: its repair is about to begin, and has no slot yet.
	parked, next bool
}

// begun is the place with where the node stood when its repair drained it.
func (p place) begun(r *remediations.Record) place {
	if r != nil && r.Intent != nil {
		i := r.Intent
		p.slotZone, p.slotPool, p.controlPlane = i.Zone, i.Pool, p.controlPlane || i.ControlPlane
	}
	return p
}

func (p place) inZone(zone string) bool { return zone != "" && (p.zone == zone || p.slotZone == zone) }

func (p place) inPool(pool string) bool { return pool != "" && (p.pool == pool || p.slotPool == pool) }

// New counts a fleet of which nothing is known yet.
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

// Fleet is the fleet as the roster has it, good until the roster changes. The breakers carry on from those in the ledger, and
// do not move where this Drydock is blind.
func (r *Roster) Fleet(l *ledger.Ledger, blind bool, now time.Time) *Fleet {
	r.age(now)
	f := &Fleet{
		nodes: len(r.members), roster: r, occupied: map[string]place{}, leading: map[string]leading{}, zones: r.zones, pools: r.pools, total: r.total,
		quorums: r.quorums, tried: r.trials(), ExpectedGPUs: r.expectedGPUs(l),
	}
	for name, m := range r.occupying {
		if remediations.InFlightAt(m.from, m.until, now) {
			f.occupied[name] = m.place.begun(m.own)
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
		if m := r.members[s.Node]; !ok || p.wouldBe {
			p = place{}
			if m != nil {
				p = m.place
				p.wouldBe = false
			}
		}
		p.parked = false // by its slot it is under way
		p.slotZone, p.slotPool, p.controlPlane = s.Zone, s.Pool, p.controlPlane || s.ControlPlane
		f.occupied[s.Node] = p
	}
	f.Judge(l, blind, now)
	f.windowOpen, f.nextWindow = r.window.at(r.config, now)
	return f
}

// Node is the Node of exactly that name; nil: the fleet has none.
func (f *Fleet) Node(name string) *corev1.Node { return f.roster.Node(name) }

// OfMachine is the Node that the machine has: one of its provider ID, or one of its Node's name that has no provider ID yet; nil: none.
func (f *Fleet) OfMachine(node, providerID string) *corev1.Node {
	for _, m := range f.roster.members {
		if id := m.Node.Spec.ProviderID; (id != "" && id == providerID) || (id == "" && m.Node.Name == node) {
			return m.Node
		}
	}
	return nil
}

// Size is how many Nodes there are.
func (f *Fleet) Size() int { return f.nodes }

// Health is how many of the nodes that are old enough to be judged are unhealthy.
func (f *Fleet) Health() (unhealthy, nodes int) { return f.total.unhealthy, f.total.nodes }

// HealthIn is the same of one zone; false: no Node is in it.
func (f *Fleet) HealthIn(zone string) (unhealthy, nodes int, ok bool) {
	z := f.zones[zone]
	if z == nil {
		return 0, 0, false
	}
	return z.unhealthy, z.nodes, true
}

// Window says whether disruptive repairs may begin now and, if not, when they may.
func (f *Fleet) Window() (open bool, next time.Time) { return f.windowOpen, f.nextWindow }

// GPUsVersion is another one after ExpectedGPUs changed.
func (f *Fleet) GPUsVersion() int { return f.roster.gpusVersion }

// Occupy counts a repair that this pass has just begun or, in observe mode, would have begun.
func (f *Fleet) Occupy(c *remediations.Config, n *corev1.Node, wouldBe bool) {
	if p, ok := f.occupied[n.Name]; ok && wouldBe && !p.wouldBe {
		return // a repair that is still under way on record counts until it is written that it is not
	}
	f.occupied[n.Name] = place{zone: c.Zone(n), pool: c.Pool(n), controlPlane: remediations.ControlPlane(n), wouldBe: wouldBe}
}

// Next counts a repair that no guard holds and that only looks once more, so that a younger fault does not pass it.
func (f *Fleet) Next(c *remediations.Config, n *corev1.Node, wouldBe bool) {
	was, occupied := f.occupied[n.Name]
	f.Occupy(c, n, wouldBe)
	p := f.occupied[n.Name]
	p.next = !p.wouldBe && (!occupied || was.distance() > 0)
	f.occupied[n.Name] = p
}

// Vacate takes a repair out of the count that this pass has just ended.
func (f *Fleet) Vacate(node string) { delete(f.occupied, node) }

// ControlPlaneBusy says why a control-plane node must wait: another one is being repaired, or too few would be left.
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

// Peers names the nodes that a control-plane node makes a quorum with.
func Peers(n *corev1.Node) string {
	if remediations.Etcd(n) {
		return "nodes of etcd"
	}
	return "control-plane nodes"
}

// QuorumWithout is how many of the other nodes of the quorum are Ready, and how many etcd needs, of how many in all. Nodes with the
// role of etcd are counted by themselves: a control-plane node without a member cannot stand in for one.
func (f *Fleet) QuorumWithout(n *corev1.Node) (others, need, all int) {
	q := f.quorums.of(n)
	others = len(q.ready)
	if q.ready[n.Name] {
		others--
	}
	return others, q.all/2 + 1, q.all
}

// window remembers when repairs may begin next, since looking for that takes longer than all else in a quiet pass.
type window struct{ closed, next time.Time }

func (w *window) at(c *remediations.Config, now time.Time) (open bool, next time.Time) {
	if !w.closed.IsZero() && !now.Before(w.closed) && now.Before(w.next) {
		return false, w.next
	}
	open, next = c.InWindow(now)
	if *w = (window{}); !open && !next.IsZero() {
		*w = window{now.Round(0), next}
	}
	return open, next
}
