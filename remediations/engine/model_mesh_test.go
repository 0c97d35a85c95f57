package engine

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	kilo "drydock.dev/drydock/remediations/providers/kilo/election"
	"drydock.dev/drydock/remediations/targets/location"
)

const leaderPolicy = "mesh-leader-degraded"

// detects is how long a location must be dark before its alert fires.
const detects = 40 * time.Second

// member is a machine's state in the mesh.
type member struct {
	place *place
	// dark means that it loses what it relays for others. darkLeading means that it does so only
	// while it leads, which cannot be predicted.
	dark, darkLeading bool
	// mute means that its Kilo agent does not run. away is since when the agent does not write, and
	// zero if it does.
	mute bool
	away time.Time
}

// place is a location of the mesh.
type place struct {
	name string
	// leader is the node that leads the location by Kilo's rule, and led is since when. address is
	// the node with an address in the mesh.
	leader, address string
	led             time.Time
	// bad means that its leader loses what it relays. since is when that last changed. fired is
	// when its alert began to fire. well is since when it answers, except for breaks that are too
	// short to be noticed.
	bad                bool
	since, fired, well time.Time
	// held is why no move is allowed there. hidden means that it was not probed lately.
	held                   string
	hidden                 bool
	heldSince, hiddenSince time.Time
	// silenced and inhibited are states of its alert. quiet means that its alert is not sent.
	silenced, inhibited, quiet bool
}

// mesh is the world's state of Kilo.
type mesh struct {
	members map[string]*member
	places  map[string]*place
	// mood is how the API server treats moves. lookTakes is how long a look takes. backFails means
	// that nothing can be put back.
	mood      providerMood
	lookTakes time.Duration
	backFails bool
	// blindly means that the port does not look again before it moves.
	blindly bool
	moved   []moved
	backs   []moved
	ended   []remediations.Entry
	begun   map[string]map[string]time.Time // by location and repair, when it began to act
	looking int
	// before are the keys from when a repair began. touched means that another writer has changed
	// one of the location's keys since.
	before  map[string]map[string]string
	touched map[string]bool
	// lost means that a Node of the location was deleted, and its record of moves with it.
	lost map[string]bool
}

// moved is one move that reached Kilo's keys.
type moved struct {
	remediations.Move
	intent, repair string
	at             time.Time
	by             *instance
	lost           bool // the store went back to its state before this
}

// leaderConfig has the policy about leaders in addition to the policy about nodes.
func leaderConfig() *remediations.Config { return withLeaders(modelConfig()) }

func withLeaders(c *remediations.Config) *remediations.Config {
	match, err := labels.NewMatcher(labels.MatchEqual, "remediation", leaderPolicy)
	if err != nil {
		panic(err)
	}
	c.Policies = append(c.Policies, &remediations.Policy{
		Name: leaderPolicy, Match: labels.Matchers{match}, Kind: remediations.KindLocation, Labels: []string{"location"}, Mode: remediations.ModeEnforce,
		Plan: []remediations.Step{{Name: "promote-leader", Wait: 2 * time.Minute, Attempts: 2}}, ProofFor: time.Minute,
	})
	c.Provided["promote-leader"], c.TopologyLabel = true, "region"
	c.Limits.Locations = remediations.LocationLimits{Concurrent: 1, PerLocation: 15 * time.Minute}
	return c
}

func leaderPolicyOf(c *remediations.Config) *remediations.Policy { return c.Policy(leaderPolicy) }

func labelsOfPlace(name string) map[string]string {
	return map[string]string{"alertname": "MeshLeaderDegraded", "location": name, "remediation": leaderPolicy, "severity": "critical"}
}

// spread puts the machines into locations of three, and runs Kilo on each.
func (w *world) spread() {
	w.mesh = &mesh{members: map[string]*member{}, places: map[string]*place{}, begun: map[string]map[string]time.Time{}, before: map[string]map[string]string{}, touched: map[string]bool{}, lost: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		w.enroll(name)
	}
	w.elect()
	for _, p := range w.mesh.places {
		p.led, p.address = time.Now().Add(-time.Hour), p.leader
	}
	w.checkIn()
}

// enroll is what Kilo's agent writes on a Node that joins.
func (w *world) enroll(name string) {
	if w.mesh == nil {
		return
	}
	i, _ := strconv.Atoi(name[1:2])
	where := "l" + strconv.Itoa(i/3)
	p := w.mesh.places[where]
	if p == nil {
		p = &place{name: where, since: time.Now().Add(-time.Hour), well: time.Now().Add(-time.Hour)}
		w.mesh.places[where] = p
	}
	w.mesh.members[name] = &member{place: p}
	endpoint := "203.0.113." + name[1:] + ":51820"
	if i > 3 {
		endpoint = "10.0.0." + name[1:] + ":51820"
	}
	w.edit(name, func(n *corev1.Node) {
		n.Labels["region"] = where
		n.Spec.PodCIDR = "10.42.0.0/24"
		n.Annotations[kilo.EndpointKey], n.Annotations[kilo.InternalIPKey] = endpoint, "10.0.0."+name[1:]+"/24"
		n.Annotations[kilo.PublicKeyKey] = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
		n.Annotations[kilo.GranularityKey], n.Annotations[kilo.LastSeenKey] = "location", "0"
		if name == "n0" || name == "n2" {
			n.Annotations[kilo.LeaderKey] = "by hand"
		}
	})
}

// kilos returns the nodes as Kilo sees them, by location. If its machine runs, a node was seen this
// moment.
func (w *world) kilos(nodes map[string]*corev1.Node) map[string][]kilo.Node {
	var all []kilo.Node
	for name, n := range nodes {
		k, m := kilo.Read(n, "region"), w.mesh.members[name]
		if k.Seen = time.Now(); m != nil && !m.away.IsZero() {
			k.Seen = m.away
		}
		all = append(all, k)
	}
	return kilo.Locations(all, time.Now())
}

// elect runs after every change of a Node: each of Kilo's agents chooses again.
func (w *world) elect() {
	if w.mesh == nil {
		return
	}
	for name, m := range w.mesh.members {
		x := w.machines[name]
		switch up := x != nil && x.up && !m.mute; {
		case up && !m.away.IsZero():
			m.away = time.Time{}
		case !up && m.away.IsZero():
			m.away = time.Now()
			w.in(61*time.Second, w.elect)
		}
	}
	all := w.kilos(w.nodes)
	for _, p := range w.mesh.places {
		leader := kilo.Elect(all[p.name])
		if leader == "" && len(all[p.name]) > 0 {
			w.fail("S2: nobody leads %s", p.name)
		}
		if leader != p.leader {
			p.leader, p.led = leader, time.Now()
			w.in(3*time.Second, w.checkIn)
		}
		m := w.mesh.members[leader]
		bad := m != nil && (m.dark || m.darkLeading)
		if bad == p.bad {
			continue
		}
		switch lasted := time.Since(p.since); {
		case !bad && lasted < detects:
			p.fired = time.Time{}
			fallthrough
		case !bad:
			if lasted > 10*time.Second {
				p.well = time.Now()
			}
		}
		p.bad, p.since = bad, time.Now()
		if bad {
			p.fired = p.since.Add(detects)
		}
	}
}

// checkIn makes Kilo's agents give an address in the mesh to the leaders, and to no other node.
func (w *world) checkIn() {
	for _, name := range slices.Sorted(maps.Keys(w.mesh.members)) {
		m, n := w.mesh.members[name], w.nodes[name]
		if n == nil || !m.away.IsZero() {
			continue
		}
		_, has := n.Annotations[kilo.WireGuardIPKey]
		switch leads := m.place.leader == name; {
		case leads && !has:
			m.place.address = name
			w.edit(name, edit(kilo.WireGuardIPKey, "10.4.0.1/16"))
		case !leads && has:
			w.edit(name, func(n *corev1.Node) { delete(n.Annotations, kilo.WireGuardIPKey) })
		}
	}
}

// darken makes the machine lose what it relays for others, or ends that.
func (w *world) darken(name string, dark bool) {
	if m := w.mesh.members[name]; m != nil {
		m.dark = dark
		w.elect()
	}
}

// rewired runs after a machine was rebooted, which cures its forwarding.
func (w *world) rewired(name string) {
	if w.mesh != nil && w.mesh.members[name] != nil {
		w.mesh.members[name].dark = false
		w.elect()
	}
}

// expel runs after a Node was deleted, and its machine with it.
func (w *world) expel(name string) {
	if w.mesh != nil {
		if m := w.mesh.members[name]; m != nil {
			w.mesh.touched[m.place.name], w.mesh.lost[m.place.name] = true, true
			if w.ledger == nil {
				w.forgetMoves()
			}
		}
		delete(w.mesh.members, name)
		w.elect()
	}
}

// forgetMoves is needed when the ledger is lost: then only the Nodes show when a location's leader
// was moved, and such a Node may be deleted, too.
func (w *world) forgetMoves() {
	if w.mesh == nil {
		return
	}
	for where := range w.mesh.lost {
		delete(w.mesh.begun, where)
	}
}

func (p *place) firing() bool {
	if p.fired.IsZero() || time.Now().Before(p.fired) || p.quiet {
		return false
	}
	return p.bad || time.Since(p.since) < alertTail
}

// meshSent are the alerts about locations, as their source sends them.
func (w *world) meshSent(at time.Time) (out []sent) {
	if w.mesh == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.mesh.places)) {
		if p := w.mesh.places[name]; p.firing() {
			out = append(out, sent{labels: labelsOfPlace(name), starts: p.fired, at: at, place: p})
		}
	}
	return append(out, sent{labels: labelsOfPlace("nowhere"), starts: time.Now().Add(-time.Hour), at: at})
}

// postPlace writes the location's alert on the node that leads it, as the receiver does.
func (w *world) postPlace(name string) {
	p := w.mesh.places[name]
	if p == nil || w.nodes[p.leader] == nil {
		return
	}
	a := w.config.NewAlert(leaderPolicyOf(w.config), labelsOfPlace(name), remediations.StatusFiring, p.fired, time.Now())
	w.edit(p.leader, func(n *corev1.Node) { n.Annotations[a.Key()] = a.Encode() })
}

// keys are the leader keys of the location's members.
func (w *world) keys(where string) map[string]string {
	out := map[string]string{}
	for name, m := range w.mesh.members {
		if n := w.nodes[name]; n != nil && m.place.name == where {
			if v, has := n.Annotations[kilo.LeaderKey]; has {
				out[name] = v
			}
		}
	}
	return out
}

// leaderRecords are the records of leaders' repairs, by node.
func (w *world) leaderRecords() map[string]*remediations.Record {
	out := map[string]*remediations.Record{}
	for name, n := range w.nodes {
		if r := modelRegistry.ReadJournal(n).Records[remediations.LocationKey]; r != nil {
			out[name] = r
		}
	}
	return out
}

// sight returns the result of a live look at the location.
func (w *world) sight(where string) location.Observation {
	p := w.mesh.places[where]
	members := w.kilos(w.nodes)[where]
	s := location.Observation{Leader: kilo.Elect(members), Refused: map[string]string{}}
	switch {
	case p == nil || s.Leader == "":
		s.Unknown = fmt.Sprintf("no node is in the location %q", where)
		return s
	case p.hidden:
		s.Unknown, s.ReachedWhy = "no probe was made lately", "no probe was made lately"
		return s
	}
	s.Held = p.held
	s.Settled = true
	for _, k := range members {
		s.Settled = s.Settled && k.WireGuard == (k.Name == s.Leader)
	}
	if s.Reached = !p.bad; p.bad {
		s.ReachedWhy = "3 members do not answer"
	}
	for _, k := range members {
		if k.Name == s.Leader {
			continue
		}
		if why := w.unfit(k.Name); why != "" {
			s.Refused[k.Name] = why
			continue
		}
		if move, ok := w.moveOf(where, members, s.Leader, k.Name); ok {
			s.Candidates = append(s.Candidates, move)
		}
	}
	return s
}

func (w *world) unfit(name string) string {
	n, m, x := w.nodes[name], w.mesh.members[name], w.machines[name]
	_, paused := n.Annotations[remediations.PauseKey]
	_, breakGlassSince := n.Annotations[remediations.BreakGlassKey]
	switch {
	case m == nil || m.dark:
		return "its siblings do not answer its probes"
	case !x.well() || x.mute:
		return "it is not Ready"
	case n.Spec.Unschedulable, paused, breakGlassSince, remediations.Excluded(n):
		return "a person holds it"
	case n.Labels[remediations.PhaseLabel] != "":
		return "it is under repair"
	}
	return ""
}

func (w *world) moveOf(where string, members []kilo.Node, from, to string) (remediations.Move, bool) {
	c, ok := kilo.Move(members, from, to)
	move := remediations.Move{Location: where, From: from, To: to, Before: map[string]*string{}}
	if c.Add != "" {
		move.Before[c.Add] = nil
	}
	for _, name := range c.Remove {
		v := w.nodes[name].Annotations[kilo.LeaderKey]
		move.Before[name] = &v
	}
	return move, ok
}
