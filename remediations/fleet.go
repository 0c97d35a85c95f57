package remediations

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Fleet is what a decision about one node must know of all others. It is made once a pass, from the Nodes and the
// ledger, and Occupy keeps it true while a pass goes on.
type Fleet struct {
	nodes int
	// occupied holds every node with a disruptive repair in Acting or Verifying, by the ledger or by its own record,
	// and, in observe mode, those that would be repaired now.
	occupied map[string]place
	// leading holds, by the node on which it is recorded, every repair of a mesh leader in flight, and would-be ones.
	leading map[string]leading
	zones   map[string]*census
	pools   map[string]int
	total   census

	// roster has the Nodes themselves.
	roster *Roster

	controlPlane      int
	controlPlaneReady map[string]bool

	// ExpectedGPUs are how many GPUs each GPU node has by its label.
	ExpectedGPUs map[string]int
	// Breakers are those in force, by scope. Unjudged: they stand still, because Drydock was blind when it counted.
	Breakers map[string]Breaker
	Unjudged bool
	// windowOpen and nextWindow say whether disruptive repairs may begin now, and when they may if not.
	windowOpen bool
	nextWindow time.Time
}

// place is where an occupied node stands. wouldBe marks a repair that observe mode only speaks of: it counts against
// other would-be repairs, never against a real one. slotZone and slotPool are where the node stood when its repair took its
// slot: a node that was relabelled since counts in both.
type place struct {
	zone, pool            string
	slotZone, slotPool    string
	controlPlane, wouldBe bool
}

func (p place) inZone(zone string) bool { return zone != "" && (p.zone == zone || p.slotZone == zone) }

func (p place) inPool(pool string) bool { return pool != "" && (p.pool == pool || p.slotPool == pool) }

// census counts nodes old enough to be judged.
type census struct{ nodes, unhealthy int }

// Zone is the value of the node's zone label; empty: it has none, and no zone limit binds it.
func (c *Config) Zone(n *corev1.Node) string { return n.Labels[c.Limits.ZoneLabel] }

// Pool is the value of the first pool label that the node has; empty: no pool limit binds it.
func (c *Config) Pool(n *corev1.Node) string {
	for _, l := range c.Limits.PoolLabels {
		if v := n.Labels[l]; v != "" {
			return v
		}
	}
	return ""
}

// ControlPlane says whether the node bears the control-plane role.
func ControlPlane(n *corev1.Node) bool {
	_, cp := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	return cp || master
}

// ReadyCondition returns the node's Ready condition; nil: the node has none, which is no data and not a fault.
func ReadyCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func Ready(n *corev1.Node) bool {
	r := ReadyCondition(n)
	return r != nil && r.Status == corev1.ConditionTrue
}

// NewFleet counts a fleet of which nothing is known yet.
func NewFleet(c *Config, nodes []*corev1.Node, l *Ledger, firing func(node string) bool, now time.Time) *Fleet {
	r := NewRoster(c)
	r.Read(nodes)
	return r.Fleet(l, firing, false, now)
}

// Fleet counts the fleet. firing says whether an alert of a policy is active on the node and not silenced. The breakers
// carry on from those in the ledger, and do not move where this Drydock is blind.
func (r *Roster) Fleet(l *Ledger, firing func(node string) bool, blind bool, now time.Time) *Fleet {
	c := r.config
	f := &Fleet{
		nodes: len(r.all), roster: r, occupied: map[string]place{}, zones: map[string]*census{}, pools: map[string]int{},
		leading: map[string]leading{}, controlPlaneReady: map[string]bool{}, ExpectedGPUs: map[string]int{},
	}
	f.count(r, firing, now)
	for _, s := range l.Slots {
		if s.Kind == KindLocation {
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
		p.slotZone, p.slotPool, p.controlPlane = s.Zone, s.Pool, p.controlPlane || s.ControlPlane
		f.occupied[s.Node] = p
	}
	f.Judge(l, blind, now)
	f.windowOpen, f.nextWindow = c.InWindow(now)
	return f
}

// Node is the Node of exactly that name; nil: the fleet has none.
func (f *Fleet) Node(name string) *corev1.Node { return f.roster.Node(name) }

// count keeps nothing of a node that has nothing: most have, and a pass over thousands of them must cost next to nothing.
func (f *Fleet) count(r *Roster, firing func(node string) bool, now time.Time) {
	zones, named, pools := make([]census, len(r.zones.names)), make([]bool, len(r.zones.names)), make([]int, len(r.pools.names))
	grown := now.Add(-r.config.Limits.StartupGrace)
	for _, m := range r.all {
		named[m.zone] = true
		pools[m.pool]++
		if m.gpus > 0 {
			f.ExpectedGPUs[m.Node.Name] = m.gpus
		}
		if m.place.controlPlane {
			f.controlPlane++
			if m.ready {
				f.controlPlaneReady[m.Node.Name] = true
			}
		}
		if m.occupies && inFlightAt(m.from, m.until, now) {
			f.occupied[m.Node.Name] = m.place
		}
		f.leadByRecord(m.Node.Name, m.leader, now)
		if m.created.After(grown) {
			continue
		}
		unhealthy := 0
		if !m.ready || m.exhausted || firing(m.Node.Name) {
			unhealthy = 1
		}
		z := &zones[m.zone]
		z.nodes, z.unhealthy = z.nodes+1, z.unhealthy+unhealthy
	}
	for i, name := range r.zones.names {
		f.total.nodes, f.total.unhealthy = f.total.nodes+zones[i].nodes, f.total.unhealthy+zones[i].unhealthy
		if i > 0 && named[i] {
			f.zones[name] = &zones[i]
		}
	}
	for i, name := range r.pools.names { // the size of the pool without a name is never asked for
		if pools[i] > 0 {
			f.pools[name] = pools[i]
		}
	}
}

// Occupy counts a repair that this pass has just begun or, in observe mode, would have begun.
func (f *Fleet) Occupy(c *Config, n *corev1.Node, wouldBe bool) {
	if p, ok := f.occupied[n.Name]; ok && wouldBe && !p.wouldBe {
		return // a repair that is still under way on record counts until it is written that it is not
	}
	f.occupied[n.Name] = place{zone: c.Zone(n), pool: c.Pool(n), controlPlane: ControlPlane(n), wouldBe: wouldBe}
}

// Vacate takes a repair out of the count that this pass has just ended.
func (f *Fleet) Vacate(node string) { delete(f.occupied, node) }

// share is how much of one limit other repairs have taken.
type share struct {
	taken, most int
	// of is where the limit counts, limit its key.
	of, limit string
	size      Quantity
}

func (s share) String() string {
	return fmt.Sprintf("%d of at most %d repairs are under way in %s", s.taken, s.most, s.of)
}

// shares are those of the limits that bind a disruptive repair on the node: of the cluster first, then of its zone and its pool.
// busy is a node that counts in them; empty: none does.
func (f *Fleet) shares(c *Config, n *corev1.Node, observing bool) (all []share, busy string) {
	zone, pool := c.Zone(n), c.Pool(n)
	inAll, inZone, inPool := 0, 0, 0
	for name, p := range f.occupied {
		if name == n.Name || (p.wouldBe && !observing) {
			continue
		}
		inAll++
		if busy == "" || name < busy {
			busy = name
		}
		if p.inZone(zone) {
			inZone++
		}
		if p.inPool(pool) {
			inPool++
		}
	}
	l := c.Limits
	all = append(all, share{inAll, l.Concurrent.Of(f.nodes), "the cluster", "limits.concurrent", l.Concurrent})
	if zone != "" {
		size := 0
		if z := f.zones[zone]; z != nil {
			size = z.nodes
		}
		all = append(all, share{inZone, l.ConcurrentPerZone.Of(size), "zone " + zone, "limits.concurrentPerZone", l.ConcurrentPerZone})
	}
	if pool != "" {
		all = append(all, share{inPool, l.ConcurrentPerPool.Of(f.pools[pool]), "pool " + pool, "limits.concurrentPerPool", l.ConcurrentPerPool})
	}
	return all, busy
}

// atLimit says which limit a further disruptive repair on the node would exceed; empty: none.
func (f *Fleet) atLimit(c *Config, n *corev1.Node, observing bool) string {
	all, busy := f.shares(c, n, observing)
	for i, s := range all {
		if s.taken < s.most {
			continue
		}
		who := ""
		if i == 0 {
			who = fmt.Sprintf(" (%s)", busy)
		}
		return fmt.Sprintf("%s%s; %s is %s", s, who, s.limit, s.size)
	}
	return ""
}

// controlPlaneBusy says why a control-plane node must wait: another one is being repaired, or too few would be left.
func (f *Fleet) controlPlaneBusy(n *corev1.Node) string {
	if !ControlPlane(n) {
		return ""
	}
	for name, p := range f.occupied {
		if name != n.Name && p.controlPlane && !p.wouldBe {
			return fmt.Sprintf("control-plane node %s is under repair; control-plane nodes are repaired one at a time", name)
		}
	}
	if others, need := f.quorumWithout(n); others < need {
		return fmt.Sprintf("only %d of the other control-plane nodes are Ready, etcd needs %d of %d", others, need, f.controlPlane)
	}
	return ""
}

// quorumWithout is how many of the other control-plane nodes are Ready, and how many etcd needs.
func (f *Fleet) quorumWithout(n *corev1.Node) (others, need int) {
	others = len(f.controlPlaneReady)
	if f.controlPlaneReady[n.Name] {
		others--
	}
	return others, f.controlPlane/2 + 1
}
