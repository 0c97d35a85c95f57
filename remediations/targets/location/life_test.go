package location_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// meshLife runs a mesh of two locations through a random history. location.Decide and node.Decide
// decide about its nodes. meshLife carries out the decisions as the engine would, with a clock of
// its own.
type meshLife struct {
	t      *testing.T
	config *Config
	word   *alerts.Snapshot
	now    time.Time
	nodes  map[string]*corev1.Node
	ledger *ledger.Ledger
	memory map[string]*meshMemory

	// keys are the values of the leader annotation, by node. broken are the nodes that do not forward.
	// unfit are the nodes that no observation proposes as leader.
	keys          map[string]string
	broken, unfit map[string]bool
	unknown, held bool
	// half means that members answer under every leader, but too few of them for a proof.
	half bool
	ids  int
	// turns is the number of turns that are left. Zero ends the history.
	turns int

	// moves are the issued moves, by location. before has the leader annotations as they were when a
	// repair first moved the location's leadership.
	moves  map[string][]issuedMove
	before map[string]map[string]string
	// touched are the repairs whose leader annotations a person changed after their first move.
	touched map[string]bool
	intents map[string]bool
	seen    map[string]int
}

type issuedMove struct {
	repair string
	at     time.Time
}

// meshMemory is what the engine remembers of one node's leader, and loses with a restart.
type meshMemory struct {
	sight       *location.Observation
	call        *lifecycle.Call
	asked, well time.Time
	heard       alerts.Heard
}

var meshNodes = []string{"a1", "a2", "a3", "a4", "b1", "b2", "b3"}

func locationIn(node string) string { return map[byte]string{'a': "eu", 'b': "us"}[node[0]] }

// leads returns the first node with the leader annotation, or else the first node.
func (l *meshLife) leads(of string) string {
	first := ""
	for _, n := range meshNodes {
		if locationIn(n) != of {
			continue
		}
		if _, ok := l.keys[n]; ok {
			return n
		}
		if first == "" {
			first = n
		}
	}
	return first
}

// look returns the observation of the mesh's provider at this moment.
func (l *meshLife) look(of string) *location.Observation {
	leader := l.leads(of)
	g := &location.Observation{At: l.now, Leader: leader, Settled: true, Reached: !l.broken[leader] && !l.half, ReachedWhy: "nobody answers"}
	if l.unknown {
		return &location.Observation{At: l.now, Unknown: "no probes"}
	}
	if l.held {
		g.Held = "granularity is full"
	}
	for _, n := range meshNodes {
		if locationIn(n) != of || n == leader || l.unfit[n] {
			continue
		}
		m := Move{Location: of, From: leader, To: n, Before: map[string]*string{n: nil}}
		for k, v := range l.keys {
			if locationIn(k) == of {
				m.Before[k] = &v
			}
		}
		g.Candidates = append(g.Candidates, m)
	}
	return g
}

func (l *meshLife) apply(m Move) {
	for n := range m.Before {
		delete(l.keys, n)
	}
	l.keys[m.To] = ""
}

func (l *meshLife) putBack(m Move) {
	for n, v := range m.Before {
		delete(l.keys, n)
		if v != nil {
			l.keys[n] = *v
		}
	}
}

func newMeshLife(t *testing.T, rt *rapid.T) *meshLife {
	sc := scene.ReadLocation(t, `{policy: {proofFor: 20s}}`)
	sc.Policy.Mode = rapid.SampledFrom([]Mode{ModeEnforce, ModeEnforce, ModeEnforce, ModeObserve}).Draw(rt, "mode")
	sc.Policy.Plan = []string{fmt.Sprintf("promote-leader %d", rapid.IntRange(1, 3).Draw(rt, "attempts"))}
	c := sc.LocationState(t).Config
	node := *c.Policies[0]
	node.Name, node.Kind, node.Labels, node.Mode = "node-not-ready", KindNode, []string{"node"}, ModeEnforce
	node.Witness = &signs.Witness{None: true} // its alerts alone show that a node is ill
	node.Plan = []Step{{Name: "reboot", Wait: 2 * time.Minute, Attempts: 1}}
	c.Policies = append(c.Policies, &node)
	l := &meshLife{
		t: t, config: c, now: scene.Noon, turns: 350, nodes: map[string]*corev1.Node{}, ledger: &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}, memory: map[string]*meshMemory{},
		keys: map[string]string{"b1": "true"}, broken: map[string]bool{}, unfit: map[string]bool{}, moves: map[string][]issuedMove{},
		before: map[string]map[string]string{}, touched: map[string]bool{}, intents: map[string]bool{}, seen: map[string]int{},
		word: &alerts.Snapshot{AskedAt: scene.Noon, Replicas: []alerts.Replica{{Watchdog: true, Alerts: map[string]alerts.Alert{}}}},
	}
	for _, n := range meshNodes {
		l.nodes[n] = scene.Bare(n)
	}
	l.restart()
	return l
}

func (l *meshLife) restart() {
	for _, n := range meshNodes {
		l.memory[n] = &meshMemory{}
	}
}

// reload simulates a restart that reads the ledger back, or rebuilds it after a person deleted it.
func (l *meshLife) reload(t *rapid.T, deleted bool) {
	l.restart()
	if deleted {
		l.ledger = ledger.Rebuild(l.config, l.all(), l.now)
		return
	}
	read, err := ledger.Decode(l.ledger.Encode())
	require.NoError(t, err)
	l.ledger = read
}

func (l *meshLife) all() []*corev1.Node {
	var out []*corev1.Node
	for _, n := range meshNodes {
		out = append(out, l.nodes[n])
	}
	return out
}

// alerts makes an alert fire for a location whose leader does not forward, and for a node that
// needs a repair. The poll writes each alert on its node, unless another node has it.
func (l *meshLife) alerts() {
	w := &l.word.Replicas[0]
	w.WatchdogAt, l.word.AskedAt = l.now, l.now
	post := func(fingerprint, policy, node string, firing bool, labels map[string]string) {
		a, was := w.Alerts[fingerprint]
		switch {
		case !firing:
			delete(w.Alerts, fingerprint)
			return
		case !was:
			a = alerts.Alert{Active: true, StartsAt: l.now}
		}
		a.UpdatedAt, a.EndsAt = l.now, l.now.Add(4*time.Minute)
		w.Alerts[fingerprint] = a
		for _, n := range l.nodes {
			if n.Annotations[AlertPrefix+fingerprint] != "" {
				return
			}
		}
		al := Alert{V: RecordVersion, Name: "A", Policy: policy, Status: StatusFiring, Fingerprint: fingerprint, StartsAt: a.StartsAt, ReceivedAt: l.now, Labels: labels}
		l.nodes[node].Annotations[al.Key()] = al.Encode()
	}
	for _, location := range []string{"eu", "us"} {
		leader := l.leads(location)
		post("0000000000000"+location, "mesh-leader-degraded", leader, l.broken[leader], map[string]string{"location": location})
	}
	for _, n := range meshNodes {
		post("00000000000000"+n, "node-not-ready", n, l.nodes[n].Labels["sick"] != "", map[string]string{"node": n})
	}
}

// turn decides once about each node, and carries out the decision. It reports whether a new
// observation may change a decision.
func (l *meshLife) turn(t *rapid.T) (looked bool) {
	if l.now.Sub(l.word.AskedAt) >= 15*time.Second {
		l.alerts()
	}
	fleet := fleet.New(l.config, l.all(), l.ledger, scene.Quiet, l.now)
	for _, name := range meshNodes {
		n, m := l.nodes[name], l.memory[name]
		if !l.concerned(n) {
			continue
		}
		l.ids++
		s := &lifecycle.State{
			Config: l.config, Node: n, Journal: ReadJournal(n), Snapshot: l.word, Fleet: fleet, Ledger: l.ledger, Call: m.call, LookSince: m.asked, WellSince: m.well, WellHeard: m.heard,
			NewID: fmt.Sprintf("r%05d", l.ids), Heartbeats: &signs.Heartbeats{ReadAt: l.now, Nodes: 7}, Survey: &Survey{Step: StepOn{Name: "reboot"}, At: l.now},
		}
		require.NoError(t, s.Journal.Malformed)
		if l.node(t, s, m) {
			s.Journal = ReadJournal(n)
		}
		leader, ok := scene.LocationOf(l.config, s.Journal)
		if !ok {
			continue
		}
		ls := &location.State{State: s, Subject: leader, Seen: m.sight}
		before := n.DeepCopy()
		d := location.Decide(ls, l.now)
		require.Equal(t, before, n)
		require.Equal(t, d, location.Decide(ls, l.now), "pure")
		l.check(t, ls, d)
		l.carry(ls, m, d)
		looked = looked || d.Verb == lifecycle.VerbLook
		if d.Record != nil || n.Annotations[LocationKey] == "" {
			n.Labels[PhaseLabel] = string(Registry(nil).LabelFor(n.Annotations))
		}
	}
	return looked
}

// concerned reports whether a decision about the node may have an effect.
func (l *meshLife) concerned(n *corev1.Node) bool {
	for k := range n.Annotations {
		if k != HistoryKey {
			return true
		}
	}
	return false
}

func (l *meshLife) carry(s *location.State, m *meshMemory, d lifecycle.Decision) {
	n := s.Node
	if !d.Well {
		m.well = time.Time{}
	} else if m.well.IsZero() {
		m.well, m.heard = l.now, d.Heard
	}
	if d.Ask.Observation {
		m.sight = l.look(s.Name)
	}
	if d.Ask.Alerts {
		m.asked = l.now
		l.alerts()
	}
	if d.Verb == lifecycle.VerbIssue {
		l.ledger.Reserve(l.config, n, d.Record, l.now)
		s.Fleet.OccupyLocation(n.Name, d.Record, false)
	}
	for _, k := range append(d.Prune, d.Consume...) {
		delete(n.Annotations, k)
	}
	switch {
	case d.Record != nil:
		n.Annotations[LocationKey] = d.Record.Encode()
	case d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop:
		delete(n.Annotations, LocationKey)
	}
	if d.Ended != nil {
		n.Annotations[HistoryKey] = EncodeHistory(s.Journal.History, *d.Ended)
		l.seen[string(d.Ended.Outcome)]++
	}
	was := s.Record != nil && s.Record.Phase.InFlight()
	if is := d.Record != nil && d.Record.Phase.InFlight() || (d.Record == nil && d.Verb != lifecycle.VerbEnd && d.Verb != lifecycle.VerbDrop && was); was && !is {
		l.ledger.Release(s.Record.ID)
		s.Fleet.VacateLocation(n.Name)
	}
	switch {
	case d.Verb == lifecycle.VerbVerify:
		m.call, m.sight = nil, nil
	case (d.Verb == lifecycle.VerbIssue || d.Verb == lifecycle.VerbResume) && d.PutBack != nil:
		m.call = &lifecycle.Call{IntentID: s.Record.PutBackID()}
	case d.Verb == lifecycle.VerbIssue:
		m.call = &lifecycle.Call{IntentID: d.Record.Intent.ID}
	}
}

// node begins the node's own repair, or ends it when its time has passed. It reports whether it
// wrote.
func (l *meshLife) node(t *rapid.T, s *lifecycle.State, m *meshMemory) bool {
	n, r := s.Node, s.Journal.Record
	if r != nil && r.Phase.InFlight() {
		if !l.now.Before(r.Deadline) {
			delete(n.Annotations, NodeRepairKey)
			delete(n.Labels, "sick")
			l.ledger.Release(r.ID)
			s.Fleet.Vacate(n.Name)
			return true
		}
		return false
	}
	s.Call = nil
	d := node.Decide(s, l.now)
	s.Call = m.call
	for _, k := range append(d.Prune, d.Consume...) {
		delete(n.Annotations, k)
	}
	if d.Ask.Alerts {
		m.asked = l.now
		l.alerts()
	}
	switch {
	case d.Verb == lifecycle.VerbIssue:
		l.seen["node repairs"]++
		for name, other := range l.nodes {
			if r := ReadJournal(other).Records[LocationKey]; r != nil && r.Phase.InFlight() {
				require.False(t, name == n.Name || slices.Contains(r.Successors(), n.Name), "%s is repaired while repair %s moves leadership there", n.Name, r.ID)
			}
		}
		l.ledger.Reserve(l.config, n, d.Record, l.now)
		s.Fleet.Occupy(l.config, n, "", false)
		d.Record.Deadline = Instant(l.now.Add(2 * time.Minute))
		n.Annotations[NodeRepairKey] = d.Record.Encode()
	case d.Record != nil:
		n.Annotations[NodeRepairKey] = d.Record.Encode()
	case d.Verb == lifecycle.VerbEnd || d.Verb == lifecycle.VerbDrop:
		delete(n.Annotations, NodeRepairKey)
	}
	if d.Record == nil && d.Verb != lifecycle.VerbEnd && d.Verb != lifecycle.VerbDrop && len(d.Prune)+len(d.Consume) == 0 {
		return false
	}
	n.Labels[PhaseLabel] = string(Registry(nil).LabelFor(n.Annotations))
	return true
}

func (l *meshLife) pass(t *rapid.T, d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end) && l.turns > 0; l.turns-- {
		step := rapid.IntRange(2000, 12000).Draw(t, "ms")
		if d > 5*time.Minute {
			step *= 4
		}
		l.now = l.now.Add(time.Duration(step) * time.Millisecond)
		for range 4 { // a new observation is decided on at once
			if !l.turn(t) {
				break
			}
		}
	}
}

// touch records that a person changed a key.
func (l *meshLife) touch() {
	for repair := range l.before {
		l.touched[repair] = true
	}
}

// answer ends the call in progress on some node, with success or without.
func (l *meshLife) answer(t *rapid.T) {
	for _, name := range meshNodes {
		m, r := l.memory[name], ReadJournal(l.nodes[name]).Records[LocationKey]
		if m.call == nil || m.call.Outcome != "" || r == nil || r.Intent == nil {
			continue
		}
		m.call.Outcome = rapid.SampledFrom([]CallOutcome{CallAccepted, CallAccepted, CallAccepted, CallRefused, CallUnknown}).Draw(t, "outcome")
		done := m.call.Outcome == CallAccepted || (m.call.Outcome == CallUnknown && rapid.Bool().Draw(t, "done"))
		switch {
		case !done:
			m.call.Why = "no"
		case m.call.IntentID == r.PutBackID():
			for _, move := range slices.Backward(r.Moves) {
				l.putBack(move)
			}
		case m.call.IntentID == r.Intent.ID:
			l.apply(r.Moves[len(r.Moves)-1])
		}
	}
}

func (l *meshLife) actions() map[string]func(*rapid.T) {
	any := func(t *rapid.T) *corev1.Node { return l.nodes[rapid.SampledFrom(meshNodes).Draw(t, "node")] }
	anyLeader := func(t *rapid.T) *corev1.Node {
		return l.nodes[l.leads(rapid.SampledFrom([]string{"eu", "eu", "us"}).Draw(t, "location"))]
	}
	toggle := func(n *corev1.Node, key, value string) {
		if _, ok := n.Annotations[key]; ok {
			delete(n.Annotations, key)
		} else {
			n.Annotations[key] = value
		}
	}
	flip := func(of map[string]bool, n string) { of[n] = !of[n] }
	people := map[string]func(*rapid.T){
		"pause":   func(t *rapid.T) { toggle(anyLeader(t), PauseKey, "true") },
		"glass":   func(t *rapid.T) { toggle(anyLeader(t), BreakGlassKey, "why") },
		"exclude": func(t *rapid.T) { scene.ToggleLabel(anyLeader(t), ExcludeLabel) },
		"cordon":  func(t *rapid.T) { n := anyLeader(t); n.Spec.Unschedulable = !n.Spec.Unschedulable },
		"reset":   func(t *rapid.T) { any(t).Annotations[ResetKey] = "true" },
		"cancel": func(t *rapid.T) {
			for _, n := range l.nodes {
				if r := ReadJournal(n).Records[LocationKey]; r != nil {
					n.Annotations[CancelKey] = r.ID
				}
			}
		},
		"silence": func(t *rapid.T) {
			for k, a := range l.word.Replicas[0].Alerts {
				if a.Active = !a.Active; a.Active {
					a.SilencedBy = nil
				} else {
					a.SilencedBy = []string{"s"}
				}
				l.word.Replicas[0].Alerts[k] = a
			}
		},
		"choose": func(t *rapid.T) { l.keys[any(t).Name] = ""; l.touch() },
		"unchoose": func(t *rapid.T) {
			delete(l.keys, any(t).Name)
			l.touch()
		},
	}
	world := map[string]func(*rapid.T){
		"unfit":           func(t *rapid.T) { flip(l.unfit, any(t).Name) },
		"no probes":       func(*rapid.T) { l.unknown = !l.unknown },
		"held":            func(*rapid.T) { l.held = !l.held },
		"heals":           func(*rapid.T) { clear(l.broken) },
		"a node is sick":  func(t *rapid.T) { any(t).Labels["sick"] = "yes" },
		"blind":           func(t *rapid.T) { l.word.WatchdogMisses = rapid.SampledFrom([]int{0, 3}).Draw(t, "misses") },
		"restart":         func(t *rapid.T) { l.reload(t, false) },
		"ledger deleted":  func(t *rapid.T) { l.reload(t, true) },
		"another breaks":  func(t *rapid.T) { flip(l.broken, any(t).Name) },
		"the leader sick": func(t *rapid.T) { anyLeader(t).Labels["sick"] = "yes" },
	}
	breaks := func(t *rapid.T) {
		l.broken[anyLeader(t).Name] = true
		l.pass(t, 45*time.Second)
	}
	pass := func(t *rapid.T) {
		l.pass(t, rapid.SampledFrom([]time.Duration{5 * time.Second, 30 * time.Second, time.Minute, 3 * time.Minute}).Draw(t, "for"))
	}
	long := func(t *rapid.T) { l.pass(t, 16*time.Minute) }
	calm := func(*rapid.T) {
		for _, n := range l.nodes {
			maps.DeleteFunc(n.Annotations, func(k, _ string) bool { return k == PauseKey || k == BreakGlassKey || k == CancelKey })
			delete(n.Labels, ExcludeLabel)
			n.Spec.Unschedulable = false
		}
		for k, a := range l.word.Replicas[0].Alerts {
			a.Active, a.SilencedBy = true, nil
			l.word.Replicas[0].Alerts[k] = a
		}
		l.unknown, l.held, l.half, l.word.WatchdogMisses = false, false, false, 0
		clear(l.unfit)
	}
	answered := func(t *rapid.T) { l.answer(t); l.pass(t, 30*time.Second) }
	return map[string]func(*rapid.T){
		"": func(*rapid.T) {}, "time passes": pass, "more time passes": pass, "long": long, "answered": answered, "answered again": answered, "answered once more": answered,
		"people": scene.OneAction(people), "world": scene.OneAction(world), "calm": calm, "a leader breaks": breaks, "another leader breaks": breaks,
		"a fault and its cure": func(t *rapid.T) {
			calm(t)
			breaks(t)
			answered(t)
			l.pass(t, 2*time.Minute)
		},
		"a fault that a person sees to": func(t *rapid.T) {
			calm(t)
			breaks(t)
			l.answer(t)
			people["cancel"](t)
			l.pass(t, 10*time.Second)
		},
		"a fault, and another leads": func(t *rapid.T) {
			calm(t)
			leader, another := l.leads("eu"), "a2"
			if leader == another {
				another = "a3"
			}
			l.unknown, l.broken[leader] = true, true
			l.pass(t, 45*time.Second)
			l.unknown = false
			l.touch()
			for _, n := range []string{"a1", "a2", "a3", "a4"} {
				delete(l.keys, n)
			}
			l.keys[another] = ""
			l.pass(t, 30*time.Second)
		},
		"a fault and half a cure": func(t *rapid.T) {
			calm(t)
			breaks(t)
			l.half = true
			l.answer(t)
			l.pass(t, 2*time.Minute)
			l.unknown = rapid.Bool().Draw(t, "unknown")
			l.pass(t, 25*time.Minute)
		},
		"a fault that ends": func(t *rapid.T) {
			calm(t)
			breaks(t)
			clear(l.broken)
			l.pass(t, 2*time.Minute)
		},
		"a fault and no cure": func(t *rapid.T) {
			calm(t)
			for _, n := range meshNodes {
				l.broken[n] = true
			}
			for range 5 {
				l.pass(t, 45*time.Second)
				l.answer(t)
			}
			l.pass(t, 20*time.Second)
		},
	}
}
