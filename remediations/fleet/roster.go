package fleet

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// Roster has what a pass needs about each Node, and the counts over all. It takes only changed
// Nodes, so a pass over thousands of healthy nodes reads none of them. Node objects are never
// modified, so what was read from them stays valid.
type Roster struct {
	config  *remediations.Config
	members members
	// names are in no order, for a random sample.
	names []string
	// identities counts how often a Node was added, removed, or got other labels or another
	// machine.
	identities int
	// firing has since when a node has had an active alert that is not silenced.
	firing map[string]time.Time
	// alike has the groups that probably share one fault, by policy and node.
	alike map[string]map[string]*alike
	counts
	// These find Nodes with the same spec.providerID or boot ID.
	machines, boots shared

	// A pass goes through each of these sets for one purpose, in place of all members.
	concerned, breakGlass, hosts, occupying, leading members
	window                                           window
}

type members map[string]*Member

func (s members) keep(name string, m *Member, in bool) {
	if in {
		s[name] = m
	} else {
		delete(s, name)
	}
}

// Member is one Node of a Roster.
type Member struct {
	Node *corev1.Node
	// Concerned means that a decision may depend on the Node's annotations or labels. InFlight
	// means that a repair on it runs.
	Concerned, InFlight bool
	// BreakGlass means that a person set drydock.dev/break-glass: every change of the Node is
	// allowed, and Drydock begins no repair there.
	BreakGlass bool

	traits
	// own is the node's own repair. It is nil if there is none or if it is unreadable.
	own *remediations.Record
	// occupies means that the repair is disruptive and runs, waits while the node is drained, or
	// would run in another mode than observe.
	occupies bool
	// Between these times the repair counts even if the ledger has no slot for it.
	from, until time.Time
	// leader and sidecars are the repairs of other targets with their record on this Node.
	leader   *remediations.Record
	sidecars []*remediations.Record
	created  time.Time
	// index is the position in Roster.names.
	index int
}

// NewRoster returns an empty Roster.
func NewRoster(c *remediations.Config) *Roster {
	return &Roster{
		config: c, members: members{}, counts: newCounts(), concerned: members{}, breakGlass: members{}, hosts: members{}, occupying: members{},
		leading: members{},
	}
}

// Read makes these Nodes the roster's only members.
func (r *Roster) Read(nodes []*corev1.Node) {
	r.Change(nodes, nil)
	if len(r.members) == len(nodes) {
		return
	}
	here := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		here[n.Name] = true
	}
	for name := range r.members {
		if !here[name] {
			r.remove(name)
		}
	}
}

// Change takes the Nodes that were added or changed, and the names of the deleted ones.
func (r *Roster) Change(nodes []*corev1.Node, gone []string) {
	for _, n := range nodes {
		m := r.members[n.Name]
		switch {
		case m == nil:
			m = &Member{index: len(r.names)}
			r.members[n.Name], r.names = m, append(r.names, n.Name)
			r.identities++
		case m.Node == n:
			continue
		case signs.Same(m.Node, n) && maps.Equal(m.Node.Annotations, n.Annotations): // only a heartbeat has changed, so the counts stay
			m.Node = n
			continue
		default:
			if !sameIdentity(m.Node, n) {
				r.identities++
			}
			r.uncount(m)
		}
		r.identify(n.Name, m, n)
		r.look(m, n)
		r.count(m)
	}
	for _, name := range gone {
		r.remove(name)
	}
}

// Fire sets since when nodes have had an active alert that is not silenced. The caller must not
// modify the map afterwards.
func (r *Roster) Fire(since map[string]time.Time) {
	was := r.firing
	r.firing = since
	for name := range was {
		if _, still := since[name]; !still {
			r.ignite(name, false)
		}
	}
	for name := range since {
		r.ignite(name, true)
	}
}

func (r *Roster) ignite(name string, fires bool) {
	m := r.members[name]
	if m == nil || m.firing == fires {
		return
	}
	r.uncount(m)
	m.firing = fires
	r.count(m)
}

func (r *Roster) remove(name string) {
	m := r.members[name]
	if m == nil {
		return
	}
	r.uncount(m)
	r.identify(name, m, nil)
	r.identities++
	last := len(r.names) - 1
	r.names[m.index] = r.names[last]
	r.members[r.names[last]].index = m.index
	r.names = r.names[:last]
	delete(r.members, name)
	for _, set := range []members{r.concerned, r.breakGlass, r.hosts, r.occupying, r.leading} {
		delete(set, name)
	}
}

// Concerned and BreakGlass return these members, sorted by name.
func (r *Roster) Concerned() []*Member  { return r.concerned.sorted() }
func (r *Roster) BreakGlass() []*Member { return r.breakGlass.sorted() }

func (s members) sorted() []*Member {
	return slices.SortedFunc(maps.Values(s), func(a, b *Member) int { return strings.Compare(a.Node.Name, b.Node.Name) })
}

// Identities changes whenever a Node is added, is removed, or gets other labels or another machine.
// Drydock's own label does not count.
func (r *Roster) Identities() int { return r.identities }

func sameIdentity(a, b *corev1.Node) bool {
	differ := func(a, b map[string]string) bool {
		for k, v := range a {
			if w, ok := b[k]; k != remediations.PhaseLabel && (!ok || v != w) {
				return true
			}
		}
		return false
	}
	return a.Spec.ProviderID == b.Spec.ProviderID && !differ(a.Labels, b.Labels) && !differ(b.Labels, a.Labels)
}

// Names returns all names, in no order. The list is valid until the roster changes.
func (r *Roster) Names() []string { return r.names }

// Nodes returns all Nodes, in the order of their names.
func (r *Roster) Nodes() []*corev1.Node {
	out := make([]*corev1.Node, 0, len(r.members))
	for _, m := range r.members.sorted() {
		out = append(out, m.Node)
	}
	return out
}

// Member returns the member with exactly that name, or nil.
func (r *Roster) Member(name string) *Member { return r.members[name] }

// Node returns the Node with exactly that name, or nil.
func (r *Roster) Node(name string) *corev1.Node {
	if m := r.members[name]; m != nil {
		return m.Node
	}
	return nil
}

func (r *Roster) look(m *Member, n *corev1.Node) {
	c, phase, was := r.config, remediations.Phase(n.Labels[remediations.PhaseLabel]), *m
	*m = Member{
		Node: n, InFlight: phase.InFlight(), Concerned: phase != "", sidecars: remediations.SidecarsInFlight(n.Annotations), created: n.CreationTimestamp.Time,
		index: was.index,
		traits: traits{
			place: place{zone: c.Zone(n), pool: c.Pool(n), controlPlane: remediations.ControlPlane(n)},
			ready: remediations.Ready(n), excluded: remediations.Excluded(n),
		},
	}
	_, m.firing = r.firing[n.Name]
	if gpus, ok := signs.PromisedGPUs(n); ok {
		m.gpus = gpus
	}
	for k := range n.Annotations {
		m.Concerned = m.Concerned || (remediations.Relevant(k) && k != remediations.HistoryKey)
	}
	m.Concerned = m.Concerned || strings.Contains(n.Annotations[remediations.HistoryKey], `"left":[`)
	_, m.BreakGlass = n.Annotations[remediations.BreakGlassKey]
	if phase != "" || n.Annotations[remediations.NodeRepairKey] != "" || n.Annotations[remediations.LocationKey] != "" {
		r.readPhase(m, phase)
	}
	if fresh := was.Node == nil || !m.created.Equal(was.created); fresh {
		r.young.add(m)
	} else {
		m.grown = was.grown
	}
	r.concerned.keep(n.Name, m, m.Concerned)
	r.breakGlass.keep(n.Name, m, m.BreakGlass)
	r.hosts.keep(n.Name, m, len(m.sidecars) > 0)
	r.occupying.keep(n.Name, m, m.occupies)
	r.leading.keep(n.Name, m, m.leader != nil)
}

// readPhase prefers a readable record to the phase label, because any user who may patch Nodes can
// write the label.
func (r *Roster) readPhase(m *Member, phase remediations.Phase) {
	c, n := r.config, m.Node
	// The label alone does not show whether the step is disruptive.
	j := c.Registry.ReadJournal(n)
	switch r := j.Record; {
	case r == nil && j.Location() != nil: // the label belongs to the leader's repair
		phase = ""
	case j.Malformed != nil && phase.InFlight():
		m.occupies, m.until = true, remediations.FarAway // the end is unknown
	case r != nil && r.Phase.InFlight() && c.Remediation(r.Step.Name).Disruptive:
		m.occupies = true
		m.from, m.until = c.Flight(n, r)
	case r != nil && parked(n, r):
		m.occupies, m.place.parked = true, true
		m.from, m.until = r.Since, parkedUntil(r)
	case r != nil:
		m.until = c.WouldUntil(c.PolicyOf(r.Policy, n), r)
		m.occupies = !m.until.IsZero()
		m.place.wouldBe = m.occupies
	}
	if m.own = j.Record; m.own != nil {
		if _, had, lost := m.own.LostGPUs(n, 0); lost {
			m.gpus = had
		}
		phase, m.wellAgain = m.own.Phase, m.own.WellAgain(n)
	}
	m.exhausted, m.leader = phase == remediations.PhaseExhausted, j.Location()
	m.InFlight = phase.InFlight() || (m.leader != nil && m.leader.Phase.InFlight())
}

func (m *Member) held() bool {
	return m.own.Phase == remediations.PhasePending && m.own.Hold != nil
}

// SidecarsInFlight returns how many sidecar repairs count against limits.sidecars.
func (r *Roster) SidecarsInFlight(now time.Time) int {
	busy := 0
	for _, m := range r.hosts {
		for _, s := range m.sidecars {
			if r.config.SidecarTakesPlace(s, now) {
				busy++
			}
		}
	}
	return busy
}
