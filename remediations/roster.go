package remediations

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Roster keeps what a pass must know of each Node, however well it is: what its labels and keys say. A Node is never
// changed in place, so what was read of one holds for as long as it is the same object. Reading all labels anew would be
// most of what a pass over thousands of healthy nodes costs.
type Roster struct {
	config  *Config
	members map[string]*Member
	all     []*Member
	// zones and pools are those that any Node has ever named; 0 is none.
	zones, pools numbered
}

// Member is one Node of a Roster.
type Member struct {
	Node *corev1.Node
	// Concerned: it carries something that a decision could rest on. InFlight: its label says that it is under repair.
	Concerned, InFlight bool
	// Glass: drydock.dev/break-glass is set.
	Glass bool

	zone, pool       int
	place            place
	ready, exhausted bool
	// repair is the node's own repair that has not run out.
	repair string
	// occupies: a disruptive repair is in flight by its record or, as place says, would be.
	occupies bool
	// from and until are when it occupies by its record alone.
	from, until time.Time
	// leader is the repair of its location's leader that is recorded on it, sidecars are those in flight.
	leader   *Record
	sidecars []*Record
	created  time.Time
	gpus     int
}

// numbered gives names numbers, so that a count by name needs no look-up for each Node.
type numbered struct {
	numbers map[string]int
	names   []string
}

func newNumbered() numbered { return numbered{numbers: map[string]int{"": 0}, names: []string{""}} }

func (x *numbered) of(name string) int {
	i, ok := x.numbers[name]
	if !ok {
		i = len(x.names)
		x.numbers[name], x.names = i, append(x.names, name)
	}
	return i
}

// NewRoster makes an empty one.
func NewRoster(c *Config) *Roster {
	return &Roster{config: c, members: map[string]*Member{}, zones: newNumbered(), pools: newNumbered()}
}

// Read makes these Nodes the roster's, all of them and no other, and looks into those alone that it does not know yet.
func (r *Roster) Read(nodes []*corev1.Node) {
	was := len(r.all)
	r.all = r.all[:0]
	for i, n := range nodes {
		if i < was && r.all[:was][i].Node == n { // as the last time, at the same place
			r.all = append(r.all, r.all[:was][i])
			continue
		}
		m := r.members[n.Name]
		if m == nil {
			m = &Member{}
			r.members[n.Name] = m
		}
		if m.Node != n {
			r.look(m, n)
		}
		r.all = append(r.all, m)
	}
	clear(r.all[len(r.all):max(was, len(r.all))])
	if len(r.members) == len(nodes) {
		return
	}
	r.members = make(map[string]*Member, len(nodes))
	for _, m := range r.all {
		r.members[m.Node.Name] = m
	}
}

// Members are all Nodes, in the order in which they were read. The list is good until the next Read.
func (r *Roster) Members() []*Member { return r.all }

// Member is the Node of exactly that name, with what is known of it; nil: there is none.
func (r *Roster) Member(name string) *Member { return r.members[name] }

// Node is the Node of exactly that name; nil: there is none.
func (r *Roster) Node(name string) *corev1.Node {
	if m := r.members[name]; m != nil {
		return m.Node
	}
	return nil
}

func (r *Roster) look(m *Member, n *corev1.Node) {
	c, phase := r.config, Phase(n.Labels[PhaseLabel])
	*m = Member{
		Node: n, InFlight: phase.InFlight(), Concerned: phase != "", sidecars: sidecarsInFlight(n.Annotations),
		place: place{zone: c.Zone(n), pool: c.Pool(n), controlPlane: ControlPlane(n)},
		ready: Ready(n), created: n.CreationTimestamp.Time,
	}
	m.zone, m.pool = r.zones.of(m.place.zone), r.pools.of(m.place.pool)
	m.gpus, _ = ExpectedGPUs(n)
	for k := range n.Annotations {
		m.Concerned = m.Concerned || (Relevant(k) && k != HistoryKey)
	}
	m.Concerned = m.Concerned || strings.Contains(n.Annotations[HistoryKey], `"left":[`)
	_, m.Glass = n.Annotations[BreakGlassKey]
	if phase == "" {
		return
	}
	// The label is written in the same PATCH as the record; the record itself says whether the step disrupts.
	j := c.Registry.ReadJournal(n)
	switch r := j.Record; {
	case r == nil && j.Location() != nil: // the label is the leader's repair's
		phase = ""
	case r == nil && j.Malformed != nil && phase.InFlight():
		m.occupies, m.until = true, farAway // nobody can say for how long
	case r != nil && r.Phase.InFlight() && c.Remediation(r.Step.Name).Disruptive:
		m.occupies = true
		m.from, m.until = c.flight(n, r)
	case r != nil && r.Phase == Pending && r.Hold != nil && r.Hold.Reason == Observing:
		m.occupies, m.place.wouldBe = true, true
		m.until = c.WouldUntil(c.PolicyOf(r.Policy, n), r)
	}
	if j.Record != nil {
		phase = j.Record.Phase
		if phase != Exhausted {
			m.repair = j.Record.ID
		}
	}
	m.exhausted, m.leader = phase == Exhausted, j.Location()
}
