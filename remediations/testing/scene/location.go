package scene

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/targets/location"
)

// LocationScene is a location.State that a person can write and read in a file. By default a repair
// is due: node n1 leads location eu and is healthy for Kubernetes, and its members answer no probe
// from outside. The alert has been firing for ten minutes, n2 and n3 could lead instead, and
// nothing forbids a repair. Scene.Leader is the record of the location's repair.
type LocationScene struct {
	Scene
	Sight Sight `json:"sight"`
	// Elsewhere are repairs of mesh leaders on other nodes. Busy are other nodes that are under
	// repair themselves.
	Elsewhere []Elsewhere `json:"elsewhere"`
	Busy      []string    `json:"busy"`
	// Earlier moves of the location's leadership: the repair's ID, and how long ago the move was.
	Moved map[string]string `json:"moved"`
	// The ledger lacks the moves that the location's record has.
	UnknownMove bool `json:"unknownMove"`
	// The location that the alerts name. The default is eu.
	Location string `json:"location"`
}

type Sight struct {
	Never bool   `json:"never"`
	Age   string `json:"age"`
	// How long the observation took. The default is zero.
	Took    string  `json:"took"`
	Leader  *string `json:"leader"`
	Held    string  `json:"held"`
	Unknown string  `json:"unknown"`
	// The nodes that could become the leader. The default is n2 and n3. If Moves is set, it has the
	// whole Move to each candidate, and this is ignored.
	Candidates []string            `json:"candidates"`
	Moves      []remediations.Move `json:"moves"`
	Refused    map[string]string   `json:"refused"`
	Unsettled  bool                `json:"unsettled"`
	Reached    bool                `json:"reached"`
}

type Elsewhere struct {
	Node, Location, To string
	Phase              remediations.Phase
	Observing          bool
}

// TheMove returns a move of the leadership of location eu. Before it, the old leader has an empty
// leader annotation, and the new leader has none.
func TheMove(from, to string) remediations.Move {
	had := ""
	return remediations.Move{Location: "eu", From: from, To: to, Before: map[string]*string{from: &had, to: nil}}
}

func (v *Sight) sight() *location.Observation {
	if v.Never {
		return nil
	}
	g := &location.Observation{At: Ago(v.Age, "1s"), Leader: "n1", Held: v.Held, Unknown: v.Unknown, Refused: v.Refused, Settled: !v.Unsettled, Reached: v.Reached}
	if v.Leader != nil {
		g.Leader = *v.Leader
	}
	names := v.Candidates
	if names == nil {
		names = []string{"n2", "n3"}
	}
	for _, to := range names {
		g.Candidates = append(g.Candidates, TheMove(g.Leader, to))
	}
	if v.Moves != nil {
		g.Candidates = v.Moves
	}
	if !g.Reached {
		g.ReachedWhy = "none of 3 members of location eu answers probes from other locations"
	}
	return g
}

// LocationState builds the input of location.Decide.
func (sc *LocationScene) LocationState(t testing.TB) *location.State {
	t.Helper()
	sc.Node.Ready = cmp.Or(sc.Node.Ready, "True")
	if sc.Alerts == nil {
		sc.Alerts = []Alert{{}}
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
	s := sc.State(t)
	s.Config.Limits.Locations = remediations.LocationLimits{Concurrent: 1, PerLocation: 15 * time.Minute}
	for _, p := range s.Config.Policies {
		p.Name, p.Kind, p.Labels = "mesh-leader-degraded", remediations.KindLocation, []string{"location"}
		for i := range p.Plan {
			p.Plan[i].Wait = 2 * time.Minute
		}
	}
	n := s.Node
	for _, a := range remediations.AlertsOn(n.Annotations) {
		a.Name, a.Labels = "MeshLeaderDegraded", map[string]string{"location": cmp.Or(sc.Location, "eu")}
		n.Annotations[a.Key()] = a.Encode()
	}
	if label := remediations.Registry(nil).LabelFor(n.Annotations); label != "" {
		n.Labels[remediations.PhaseLabel] = string(label)
	}
	s.Journal = remediations.ReadJournal(n)
	if s.Ledger != nil {
		for repair, age := range sc.Moved {
			s.Ledger.Moved("eu", repair, Ago(age, ""))
		}
	}
	if r := s.Journal.Records[remediations.LocationKey]; s.Ledger != nil && r != nil && r.Intent != nil && !sc.UnknownMove {
		s.Ledger.Moved(r.Location, r.ID, r.Intent.At)
	}
	nodes := map[string]*corev1.Node{}
	all := []*corev1.Node{n}
	for _, other := range sc.OtherNodes() {
		nodes[other.Name] = other
		all = append(all, other)
	}
	for _, name := range sc.Busy {
		InFlight(nodes[name], "reboot")
	}
	for _, e := range sc.Elsewhere {
		Leads(nodes[e.Node], cmp.Or(e.Location, "us"), e.To, cmp.Or(e.Phase, remediations.PhaseVerifying), e.Observing)
	}
	l := &ledger.Ledger{Slots: sc.Ledger.Slots, Status: ledger.Status{Breakers: sc.Ledger.Breakers}}
	s.Fleet = fleet.New(s.Config, all, l, func(string) bool { return false }, Noon)
	out := &location.State{State: s, Seen: sc.Sight.sight()}
	out.LookTook = took(t, sc.Sight.Took)
	out.Subject, _ = LocationOf(s.Config, s.Journal)
	return out
}

func took(t testing.TB, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(text, "0s"))
	require.NoError(t, err)
	return d
}

// LocationOf returns the location that has an alert or a record in the journal. A Node leads at
// most one.
func LocationOf(c *remediations.Config, j remediations.Journal) (remediations.Subject, bool) {
	for _, one := range c.Subjects(remediations.KindLocation, j) {
		return one, true
	}
	return remediations.Subject{}, false
}

// Leads puts the record of a repair of the location's leader on the node.
func Leads(n *corev1.Node, location, to string, p remediations.Phase, observing bool) {
	r := LocationRecord(p)
	r.ID, r.Location, r.Moves[0] = "l"+n.Name, location, TheMove(n.Name, cmp.Or(to, "n9"))
	r.Moves[0].Location, r.Intent.ID, r.Intent.Successor = location, r.ID+"-0-1", r.Moves[0].To
	if observing {
		r.Phase, r.Hold, r.Intent, r.Moves = remediations.PhasePending, &remediations.Hold{Reason: remediations.ReasonObserving, Since: Noon}, nil, nil
	}
	n.Annotations[remediations.LocationKey], n.Labels[remediations.PhaseLabel] = r.Encode(), string(r.Phase)
}

// LocationRecord returns the record of a repair that moved the leadership of location eu from n1 to
// n2 thirty seconds ago.
func LocationRecord(p remediations.Phase) *remediations.Record {
	began := Noon.Add(-30 * time.Second)
	return &remediations.Record{
		V: 1, ID: "r1", Policy: "mesh-leader-degraded", Cause: remediations.Cause{Alert: FP}, Location: "eu", Phase: p, Step: remediations.StepRef{Name: "promote-leader", Attempt: 1},
		Done: remediations.Attempts{{Name: "promote-leader", Number: 1}}, Moves: []remediations.Move{TheMove("n1", "n2")}, Began: began, Since: began, Deadline: began.Add(2 * time.Minute),
		Intent: &remediations.Intent{ID: "r1-0-1", At: began, UID: "uid-n1", Successor: "n2"}, Undo: []remediations.Undo{{Kind: remediations.UndoLeader, Key: "n2", At: began}},
	}
}

func (g Golden) LocationState(t testing.TB) *location.State {
	t.Helper()
	text, err := os.ReadFile(g.Input)
	require.NoError(t, err)
	return ReadLocation(t, string(text)).LocationState(t)
}

func ReadLocation(t testing.TB, text string) *LocationScene {
	t.Helper()
	sc := &LocationScene{}
	require.NoError(t, yaml.UnmarshalStrict(Moments(t, []byte(text)), sc))
	return sc
}
