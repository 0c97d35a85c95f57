package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Fleet has the facts about all nodes that a decision about one node needs. Each pass builds it
// from the Nodes and the ledger. Occupy and similar methods update it during the pass.
type Fleet struct {
	nodes int
	// occupied has every node with a disruptive repair in Acting or Verifying, according to the ledger
	// or to the node's record. It also has nodes with parked repairs and, in observe mode, nodes that
	// would be repaired now. A parked repair is Pending while its node is drained.
	occupied map[string]place
	// leading has every repair of a mesh leader that is in flight or, in observe mode, would be. Its
	// keys are the nodes that have the records.
	leading map[string]leading
	zones   map[string]*census
	pools   map[string]int
	total   census

	// roster has the Nodes themselves.
	roster *Roster

	quorums quorums
	tried   map[string]tried

	// ExpectedGPUs has the number of GPUs that each GPU node should offer, by the node's name.
	ExpectedGPUs map[string]int
	// trying has the node of each repair that this pass began, by the repair's id.
	trying map[string]string
	// Breakers are the breakers that are not closed, by scope. Unjudged means that they did not
	// change, because Drydock could not observe the fleet.
	Breakers map[string]ledger.Breaker
	Unjudged bool
	// windowOpen means that disruptive repairs may begin now. If it is false, nextWindow is when they
	// may.
	windowOpen bool
	nextWindow time.Time
}

// place describes a node in occupied. wouldBe marks a repair that observe mode would do: it counts
// against other such repairs, but never against a real one. slotZone and slotPool are the node's
// zone and pool when its repair took its slot, or drained the node. A node whose labels changed
// since then counts in both zones and pools.
type place struct {
	zone, pool         string
	slotZone, slotPool string
	// provider is the provider of the repair's step. If that step needs no provider, it is the
	// provider of the next step that needs one.
	provider              string
	controlPlane, wouldBe bool
	// parked means that the node is drained, and its repair waits for its next step. next means that
	// the node's repair is about to begin, and has no slot yet.
	parked, next bool
}

// begun returns p with the zone, pool and role that the node had when its repair drained it.
func (p place) begun(r *remediations.Record) place {
	if r != nil && r.Intent != nil {
		i := r.Intent
		p.slotZone, p.slotPool, p.controlPlane = i.Zone, i.Pool, p.controlPlane || i.ControlPlane
	}
	return p
}

func (p place) inZone(zone string) bool { return p.zone == zone || p.slotZone == zone }

func (p place) inPool(pool string) bool { return p.pool == pool || p.slotPool == pool }

// New counts a fleet without a roster of earlier passes.
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

// Fleet returns the fleet of the roster. It is valid until the roster changes. The breakers
// continue from those in the ledger. They do not change while blind is true, because Drydock cannot
// observe the fleet.
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

// OfMachine returns the machine's Node: a Node with the provider ID, or a Node with the name node
// that has no provider ID yet. It returns nil if there is none.
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

// Health returns how many nodes are unhealthy, and how many nodes count. Only nodes older than
// limits.startupGrace that are not excluded count.
func (f *Fleet) Health() (unhealthy, nodes int) { return f.total.unhealthy, f.total.nodes }

// HealthIn is Health for one zone. ok is false if the zone has no Node.
func (f *Fleet) HealthIn(zone string) (unhealthy, nodes int, ok bool) {
	z := f.zones[zone]
	if z == nil {
		return 0, 0, false
	}
	return z.unhealthy, z.nodes, true
}

// Window reports whether disruptive repairs may begin now. If not, next is when they may.
func (f *Fleet) Window() (open bool, next time.Time) { return f.windowOpen, f.nextWindow }

// GPUsVersion changes whenever ExpectedGPUs changes.
func (f *Fleet) GPUsVersion() int { return f.roster.gpusVersion }

// Occupy counts a repair that this pass has just begun or, in observe mode, would have begun.
// provider is the result of Config.ProviderAhead.
func (f *Fleet) Occupy(c *remediations.Config, n *corev1.Node, provider string, wouldBe bool) {
	if _, ok := f.occupied[n.Name]; ok && wouldBe {
		return // a repair in flight counts until its end is written
	}
	f.occupied[n.Name] = place{zone: c.Zone(n), pool: c.Pool(n), provider: provider, controlPlane: remediations.ControlPlane(n), wouldBe: wouldBe}
}

// Next counts a repair that no guard holds and that only waits for one more reading. So the repair
// of a younger fault cannot begin before it.
func (f *Fleet) Next(c *remediations.Config, n *corev1.Node, provider string, wouldBe bool) {
	was, occupied := f.occupied[n.Name]
	f.Occupy(c, n, provider, wouldBe)
	p := f.occupied[n.Name]
	p.next = !occupied || was.distance() > 0
	f.occupied[n.Name] = p
}

// Vacate stops counting the node's repair, because this pass has ended it.
func (f *Fleet) Vacate(node string) { delete(f.occupied, node) }

// ControlPlaneBusy returns why a control-plane node must wait: another control-plane node is under
// repair, or too few would stay Ready. It returns an empty text if the node need not wait.
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

// Peers names, for messages, the nodes that form a quorum with a control-plane node.
func Peers(n *corev1.Node) string {
	if remediations.Etcd(n) {
		return "nodes of etcd"
	}
	return "control-plane nodes"
}

// QuorumWithout returns how many other nodes of the node's quorum are Ready, how many etcd needs,
// and how many the quorum has. Nodes with the etcd role are counted separately, because a
// control-plane node without an etcd member cannot replace one of them.
func (f *Fleet) QuorumWithout(n *corev1.Node) (others, need, all int) {
	q := f.quorums.of(n)
	others = len(q.ready)
	if q.ready[n.Name] {
		others--
	}
	return others, q.all/2 + 1, q.all
}

// window caches when repairs may begin next, because computing this takes longer than everything
// else in a pass without changes.
type window struct{ closed, next time.Time }

func (w *window) at(c *remediations.Config, now time.Time) (open bool, next time.Time) {
	if !now.Before(w.closed) && now.Before(w.next) {
		return false, w.next
	}
	open, next = c.InWindow(now)
	*w = window{now.Round(0), next}
	return open, next
}
