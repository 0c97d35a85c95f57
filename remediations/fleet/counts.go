package fleet

import (
	"container/heap"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// counts are updated with each changed Node, so that a pass need not count all Nodes.
type counts struct {
	total   census
	zones   map[string]*census
	pools   map[string]int
	quorums quorums
	// gpus comes from the nodes' labels or repair records, by node.
	gpus map[string]int
	// shown has how many GPUs each node should offer, from gpus and the ledger. Callers of the
	// package keep this map, so it must not be modified. It is nil if it must be computed again.
	// ledgerGPUs is a copy of the ledger's numbers.
	shown, ledgerGPUs map[string]int
	gpusVersion       int
	// young has the nodes that were younger than limits.startupGrace when age last ran. grown is
	// the latest creation time of a node that was old enough then.
	young youngest
	grown time.Time
}

// In census, nodes and unhealthy count only nodes that are older than limits.startupGrace and not
// excluded from repairs. all counts every node.
type census struct{ nodes, unhealthy, all int }

// quorum counts control-plane nodes. More than half of them must stay Ready.
type quorum struct {
	all   int
	ready map[string]bool
}

// quorums has the control-plane nodes without the etcd role, then those with it. If no node has
// that role, the first group has the members of etcd.
type quorums [2]quorum

func (q *quorums) of(n *corev1.Node) *quorum {
	if remediations.Etcd(n) {
		return &q[1]
	}
	return &q[0]
}

type traits struct {
	place            place
	ready, exhausted bool
	// wellAgain means that the node became healthy after its repair was exhausted.
	wellAgain bool
	// firing means an active alert that is not silenced. grown means older than
	// limits.startupGrace. excluded means that a person excluded the node: its health does not
	// count.
	firing, grown, excluded bool
	gpus                    int
}

func newCounts() counts {
	return counts{zones: map[string]*census{}, pools: map[string]int{}, quorums: quorums{{ready: map[string]bool{}}, {ready: map[string]bool{}}}, gpus: map[string]int{}}
}

func (c *counts) count(m *Member) {
	name := m.Node.Name
	c.add(m, 1)
	if m.gpus > 0 {
		c.gpus[name], c.shown = m.gpus, nil
	}
	if m.place.controlPlane && m.ready {
		c.quorums.of(m.Node).ready[name] = true
	}
}

func (c *counts) uncount(m *Member) {
	name := m.Node.Name
	c.add(m, -1)
	if m.gpus > 0 {
		delete(c.gpus, name)
		c.shown = nil
	}
	delete(c.quorums.of(m.Node).ready, name)
}

func (c *counts) add(m *Member, by int) {
	nodes, unhealthy := 0, 0
	if m.grown && !m.excluded {
		nodes = by
		if !m.ready || (m.exhausted && !m.wellAgain) || m.firing {
			unhealthy = by
		}
	}
	c.total.add(nodes, unhealthy, by)
	if zone := m.place.zone; zone != "" {
		z := c.zones[zone]
		if z == nil {
			z = &census{}
			c.zones[zone] = z
		}
		if z.add(nodes, unhealthy, by); z.all == 0 {
			delete(c.zones, zone)
		}
	}
	if pool := m.place.pool; pool != "" {
		if c.pools[pool] += by; c.pools[pool] == 0 {
			delete(c.pools, pool)
		}
	}
	if m.place.controlPlane {
		c.quorums.of(m.Node).all += by
	}
}

func (x *census) add(nodes, unhealthy, all int) {
	x.nodes, x.unhealthy, x.all = x.nodes+nodes, x.unhealthy+unhealthy, x.all+all
}

// age moves nodes that have become older than limits.startupGrace. If the clock was set back, it
// checks all nodes.
func (r *Roster) age(now time.Time) {
	grown := now.Add(-r.config.Limits.StartupGrace).Round(0) // a Node's creation time has no monotonic clock reading either
	if grown.Before(r.grown) {
		r.young = nil
		for _, m := range r.members {
			r.uncount(m)
			m.grown = false
			r.count(m)
			r.young.add(m)
		}
	}
	r.grown = grown
	for len(r.young) > 0 && !r.young[0].created.After(grown) {
		next, _ := heap.Pop(&r.young).(young)
		m := next.member
		if !m.created.Equal(next.created) || r.members[m.Node.Name] != m {
			continue // the member has changed since it was added here
		}
		r.uncount(m)
		m.grown = true
		r.count(m)
	}
}

// young is a node whose health does not count yet.
type young struct {
	created time.Time
	member  *Member
}

// youngest is a heap, the oldest first.
type youngest []young

func (h *youngest) add(m *Member) { heap.Push(h, young{m.created, m}) }

func (h *youngest) Len() int           { return len(*h) }
func (h *youngest) Less(i, j int) bool { return (*h)[i].created.Before((*h)[j].created) }
func (h *youngest) Swap(i, j int)      { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }
func (h *youngest) Push(x any) {
	one, _ := x.(young)
	*h = append(*h, one)
}

func (h *youngest) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	(*h)[last] = young{}
	*h = (*h)[:last]
	return one
}
