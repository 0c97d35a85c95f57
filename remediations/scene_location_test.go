package remediations

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// leaderScene is a LocationState in a form that a person can read. What it leaves out is as on an ordinary bad day: node n1
// leads location eu, is well by all that Kubernetes knows, and its members answer nobody from outside. The alert has been
// firing for ten minutes, both Alertmanagers say so, nobody objects, the mode is enforce. The location was seen a second
// ago; n2 and n3 could lead it instead. The record of its repair is the scene's leader.
type leaderScene struct {
	scene
	Sight sceneSight `json:"sight"`
	// Elsewhere are repairs of leaders in flight on other nodes, Busy the other nodes that are under repair themselves.
	Elsewhere []sceneElsewhere `json:"elsewhere"`
	Busy      []string         `json:"busy"`
	// Moved are the ages of earlier moves in the location, by repair.
	Moved map[string]string `json:"moved"`
	// UnknownMove: the ledger knows nothing of the moves on record.
	UnknownMove bool `json:"unknownMove"`
	// Location is what the alerts say; absent: eu.
	Location string `json:"location"`
}

type sceneSight struct {
	Never   bool    `json:"never"`
	Age     string  `json:"age"`
	Leader  *string `json:"leader"`
	Held    string  `json:"held"`
	Unknown string  `json:"unknown"`
	// Candidates by name, absent: n2 and n3. Moves are candidates written out.
	Candidates []string          `json:"candidates"`
	Moves      []Move            `json:"moves"`
	Refused    map[string]string `json:"refused"`
	Unsettled  bool              `json:"unsettled"`
	Reached    bool              `json:"reached"`
}

type sceneElsewhere struct {
	Node, Location, To string
	Phase              Phase
	Observing          bool
}

// theMove is how leadership of location eu goes from one node to another, neither of which is annotated.
func theMove(from, to string) Move {
	had := ""
	return Move{Location: "eu", From: from, To: to, Before: map[string]*string{from: &had, to: nil}}
}

func (v *sceneSight) sight() *LocationSight {
	if v.Never {
		return nil
	}
	g := &LocationSight{At: ago(v.Age, "1s"), Leader: "n1", Held: v.Held, Unknown: v.Unknown, Refused: v.Refused, Settled: !v.Unsettled, Reached: v.Reached}
	if v.Leader != nil {
		g.Leader = *v.Leader
	}
	names := v.Candidates
	if names == nil {
		names = []string{"n2", "n3"}
	}
	for _, to := range names {
		g.Candidates = append(g.Candidates, theMove(g.Leader, to))
	}
	if v.Moves != nil {
		g.Candidates = v.Moves
	}
	if !g.Reached {
		g.ReachedWhy = "none of 3 members of location eu answers probes from other locations"
	}
	return g
}

// locationState builds what DecideLocation is given.
func (sc *leaderScene) locationState(t testing.TB) *LocationState {
	t.Helper()
	sc.Node.Ready = cmp.Or(sc.Node.Ready, "True")
	if sc.Alerts == nil {
		sc.Alerts = []sceneAlert{{}}
	}
	for i := range sc.Alerts {
		sc.Alerts[i].Policy = cmp.Or(sc.Alerts[i].Policy, "mesh-leader-degraded")
	}
	sc.Policy.For, sc.Policy.ProofFor, sc.Policy.Cooldown = cmp.Or(sc.Policy.For, "0s"), cmp.Or(sc.Policy.ProofFor, "60s"), cmp.Or(sc.Policy.Cooldown, "0s")
	if sc.Policy.Plan == nil {
		sc.Policy.Plan = []string{"promote-leader 2"}
	}
	if sc.Provided == nil {
		sc.Provided = []string{"reboot", "promote-leader"}
	}
	s := sc.state(t)
	s.Config.Limits.Locations = LocationLimits{Concurrent: 1, PerLocation: 15 * time.Minute}
	for _, p := range s.Config.Policies {
		p.Name, p.Kind, p.Labels = "mesh-leader-degraded", KindLocation, []string{"location"}
		for i := range p.Plan {
			p.Plan[i].Wait = 2 * time.Minute
		}
	}
	n := s.Node
	for _, a := range AlertsOn(n.Annotations) {
		a.Name, a.Labels = "MeshLeaderDegraded", map[string]string{"location": cmp.Or(sc.Location, "eu")}
		n.Annotations[a.Key()] = a.Encode()
	}
	if label := LabelFor(n.Annotations); label != "" {
		n.Labels[PhaseLabel] = string(label)
	}
	s.Journal = ReadJournal(n)
	if s.Ledger != nil {
		for repair, age := range sc.Moved {
			s.Ledger.moved("eu", repair, ago(age, ""))
		}
	}
	if r := s.Journal.Records[LocationKey]; s.Ledger != nil && r != nil && r.Intent != nil && !sc.UnknownMove {
		s.Ledger.moved(r.Location, r.ID, r.Intent.At)
	}
	nodes := map[string]*corev1.Node{}
	all := []*corev1.Node{n}
	for _, other := range sc.others() {
		nodes[other.Name] = other
		all = append(all, other)
	}
	for _, name := range sc.Busy {
		inFlight(nodes[name], "reboot")
	}
	for _, e := range sc.Elsewhere {
		leads(nodes[e.Node], cmp.Or(e.Location, "us"), e.To, cmp.Or(e.Phase, Verifying), e.Observing)
	}
	ledger := &Ledger{Slots: sc.Ledger.Slots, Status: LedgerStatus{Breakers: sc.Ledger.Breakers}}
	s.Fleet = NewFleet(s.Config, all, ledger, func(string) bool { return false }, noon)
	out := &LocationState{Target: Target{State: s}, Sight: sc.Sight.sight()}
	out.Subject, _ = locationOf(s.Config, s.Journal)
	return out
}

// locationOf is the location that the journal has something on; false: there is none. A node leads one at most.
func locationOf(c *Config, j Journal) (Subject, bool) {
	for _, one := range c.Subjects(KindLocation, j) {
		return one, true
	}
	return Subject{}, false
}

// leads puts a repair of a location's leader on the node.
func leads(n *corev1.Node, location, to string, p Phase, observing bool) {
	r := leaderRecord(p)
	r.ID, r.Location, r.Moves[0] = "l"+n.Name, location, theMove(n.Name, cmp.Or(to, "n9"))
	r.Moves[0].Location, r.Intent.ID, r.Intent.Successor = location, r.ID+"-0-1", r.Moves[0].To
	if observing {
		r.Phase, r.Hold, r.Intent, r.Moves = Pending, &Hold{Reason: Observing, Since: noon}, nil, nil
	}
	n.Annotations[LocationKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
}

// leaderRecord is one of a move that was issued thirty seconds ago.
func leaderRecord(p Phase) *Record {
	began := noon.Add(-30 * time.Second)
	return &Record{
		V: 1, ID: "r1", Policy: "mesh-leader-degraded", Cause: Cause{Alert: fp}, Location: "eu", Phase: p, Step: StepRef{Name: "promote-leader", Attempt: 1},
		Done: []string{"promote-leader:1"}, Moves: []Move{theMove("n1", "n2")}, Began: began, Since: began, Deadline: began.Add(2 * time.Minute),
		Intent: &Intent{ID: "r1-0-1", At: began, UID: "uid-n1", Successor: "n2"}, Undo: []Undo{{Kind: UndoLeader, Key: "n2", At: began}},
	}
}

func (g golden) locationState(t testing.TB) *LocationState {
	t.Helper()
	text, err := os.ReadFile(g.input)
	require.NoError(t, err)
	return readLeaderScene(t, string(text)).locationState(t)
}

func readLeaderScene(t testing.TB, text string) *leaderScene {
	t.Helper()
	sc := &leaderScene{}
	require.NoError(t, yaml.UnmarshalStrict(moments(t, []byte(text)), sc))
	return sc
}
