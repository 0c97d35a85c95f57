package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Fleet is what a decision about one node must know about all others. Each pass builds it from the
// Nodes and the ledger, and Occupy updates it during the pass.
type Fleet struct {
	nodes int
	// occupied holds every node with a disruptive repair in Acting or Verifying, by the ledger or
	// its own record. It also holds nodes with parked repairs and, in observe mode, nodes that
	// would be repaired now.
	occupied map[string]place
	// leading holds every repair of a mesh leader that is in flight, and would-be ones. Its keys
	// are the nodes that have the records.
	leading map[string]leading
	zones   map[string]*census
	pools   map[string]int
	total   census

	// roster has the Nodes themselves.
	roster *Roster

	quorums quorums
	tried   map[string]tried

	// ExpectedGPUs is how many GPUs each GPU node has by its label, or had before.
	ExpectedGPUs map[string]int
	// trying are the nodes of the repairs that this pass began, by repair.
	trying map[string]string
	// Breakers are the breakers in force, by scope. Unjudged: they did not change, because Drydock
	// was blind when it counted.
	Breakers map[string]ledger.Breaker
	Unjudged bool
	// windowOpen reports whether disruptive repairs may begin now, and nextWindow when they may if
	// not.
	windowOpen bool
	nextWindow time.Time
}

// place describes an occupied node. wouldBe marks a would-be repair of observe mode. It counts
// against other would-be repairs, never against a real one. slotZone and slotPool are the node's
// zone and pool when its repair took its slot, or drained it: a node that was relabelled since
// counts in both.
type place struct {
	zone, pool         string
	slotZone, slotPool string
	// provider carries out the repair's step or, if none has that step, the next one that one has.
	provider              string
	controlPlane, wouldBe bool
	// parked: the node's repair is drained and waits. next: its repair is about to begin, and has
	// no slot yet.
	parked, next bool
}

// begun returns the place with the node's zone, pool and role at the time when its repair drained
// it.
func (p place) begun(r *remediations.Record) place {
	if r != nil && r.Intent != nil {
		i := r.Intent
		p.slotZone, p.slotPool, p.controlPlane = i.Zone, i.Pool, p.controlPlane || i.ControlPlane
	}
	return p
}

func (p place) inZone(zone string) bool { return p.zone == zone || p.slotZone == zone }

func (p place) inPool(pool string) bool { return p.pool == pool || p.slotPool == pool }

// New counts a fleet from nothing.
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

// Fleet returns the fleet of the roster, valid until the roster changes. The breakers continue from
// those in the ledger. They do not change while this replica is blind.
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
		p.parked = false // by its slot it is under way
		p.slotZone, p.slotPool, p.controlPlane = s.Zone, s.Pool, p.controlPlane || s.ControlPlane
		p.provider = r.providerOf(l, s, m)
		f.occupied[s.Node] = p
	}
	f.Judge(l, blind, now)
	f.windowOpen, f.nextWindow = r.window.at(r.config, now)
	return f
}

// Node returns the Node with exactly that name; nil: none.
func (f *Fleet) Node(name string) *corev1.Node { return f.roster.Node(name) }

// OfMachine returns the machine's Node: one with its provider ID, or one with its Node's name and
// no provider ID yet; nil: none.
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

// Health returns how many of the nodes that are old enough to be judged are unhealthy.
func (f *Fleet) Health() (unhealthy, nodes int) { return f.total.unhealthy, f.total.nodes }

// HealthIn is Health for one zone; false: the zone has no Node.
func (f *Fleet) HealthIn(zone string) (unhealthy, nodes int, ok bool) {
	z := f.zones[zone]
	if z == nil {
		return 0, 0, false
	}
	return z.unhealthy, z.nodes, true
}

// Window reports whether disruptive repairs may begin now and, if not, when they may.
func (f *Fleet) Window() (open bool, next time.Time) { return f.windowOpen, f.nextWindow }

// GPUsVersion changes whenever ExpectedGPUs changes.
func (f *Fleet) GPUsVersion() int { return f.roster.gpusVersion }

// Occupy counts a repair that this pass has just begun or, in observe mode, would have begun. The
// provider is that of Config.ProviderAhead.
func (f *Fleet) Occupy(c *remediations.Config, n *corev1.Node, provider string, wouldBe bool) {
	if _, ok := f.occupied[n.Name]; ok && wouldBe {
		return // a repair under way on record counts until its end is written
	}
	f.occupied[n.Name] = place{zone: c.Zone(n), pool: c.Pool(n), provider: provider, controlPlane: remediations.ControlPlane(n), wouldBe: wouldBe}
}

// Next counts a repair that no guard holds and that only waits for one more reading, so that a
// younger fault does not overtake it.
func (f *Fleet) Next(c *remediations.Config, n *corev1.Node, provider string, wouldBe bool) {
	was, occupied := f.occupied[n.Name]
	f.Occupy(c, n, provider, wouldBe)
	p := f.occupied[n.Name]
	p.next = !occupied || was.distance() > 0
	f.occupied[n.Name] = p
}

// Vacate removes a repair from the count that this pass has just ended.
func (f *Fleet) Vacate(node string) { delete(f.occupied, node) }

// ControlPlaneBusy returns why a control-plane node must wait: another one is under repair, or too
// few would be left.
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

// Peers names the nodes that a control-plane node forms a quorum with.
func Peers(n *corev1.Node) string {
	if remediations.Etcd(n) {
		return "nodes of etcd"
	}
	return "control-plane nodes"
}

// QuorumWithout returns how many other nodes of the quorum are Ready, how many etcd needs, and how
// many exist. Nodes with the etcd role are counted separately: a control-plane node without a
// member cannot replace one of them.
func (f *Fleet) QuorumWithout(n *corev1.Node) (others, need, all int) {
	q := f.quorums.of(n)
	others = len(q.ready)
	if q.ready[n.Name] {
		others--
	}
	return others, q.all/2 + 1, q.all
}

// window remembers when repairs may begin next, because computing that takes longer than all else
// in a quiet pass.
type window struct{ closed, next time.Time }

func (w *window) at(c *remediations.Config, now time.Time) (open bool, next time.Time) {
	if !now.Before(w.closed) && now.Before(w.next) {
		return false, w.next
	}
	open, next = c.InWindow(now)
	*w = window{now.Round(0), next}
	return open, next
}
