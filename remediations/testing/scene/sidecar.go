package scene

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// SidecarScene is a sidecar.State that a person can write and read in a file. By default a repair
// is due: the sidecar of pod sei/a-0, on the healthy node n1, has been waiting for an approval
// since its pod was replaced. Its alert has been firing for ten minutes, and nothing forbids a
// repair.
type SidecarScene struct {
	Scene
	// Sidecar is the record of the sidecar's repair. Beside are the records of the node's other
	// sidecars.
	Sidecar any   `json:"sidecar"`
	Beside  []any `json:"beside"`
	// The last observation of the sidecar.
	Sighting Sighting `json:"sighting"`
	// The number of sidecars under repair on other nodes.
	Elsewhere int `json:"elsewhere"`
	// The configured provider of sidecars. The default is sei.
	Provider string `json:"provider"`
	// How many bytes of Drydock's annotations the Node already has.
	Bytes int `json:"bytes"`
}

type Sighting struct {
	Never   bool           `json:"never"`
	Started string         `json:"started"` // none: unknown
	Closed  string         `json:"closed"`  // since when the gate is known to be closed; the default is since this observation
	Opened  string         `json:"opened"`  // when the sidecar last answered that it is ready; the default is unknown
	Age     string         `json:"age"`
	Took    string         `json:"took"` // how long the observation took; the default is zero
	UID     string         `json:"uid"`  // none: there is no such pod
	Node    string         `json:"node"`
	Health  sidecar.Health `json:"health"`
	Held    string         `json:"held"`
	Unknown string         `json:"unknown"`
	Detail  string         `json:"detail"`
}

// ThePod is the pod whose sidecar every scene is about.
var ThePod = remediations.Pod{Namespace: "sei", Name: "a-0"}

const NewTask = "6f1b7c1e-7f4c-4d6a-9a53-2d6a0c3e9f10"

func (v *Sighting) sighting() *sidecar.Observation {
	if v.Never {
		return nil
	}
	g := &sidecar.Observation{At: Ago(v.Age, "1s"), Pod: ThePod, Node: cmp.Or(v.Node, "n1"), Health: v.Health, Held: v.Held, Unknown: v.Unknown, Detail: v.Detail}
	g.Owner = remediations.Object{APIVersion: "sei.io/v1alpha1", Kind: "SeiNode", Namespace: "sei", Name: "a"}
	if v.Health == "" && v.Held == "" && v.Unknown == "" {
		g.Health = sidecar.HealthNotReady
	}
	if v.Started != "none" {
		g.StartedAt = Ago(v.Started, "5m")
	}
	g.ClosedSince = g.At
	if v.Closed != "" {
		g.ClosedSince = Ago(v.Closed, "")
	}
	if v.Opened != "" {
		g.OpenAt = Ago(v.Opened, "")
	}
	if v.UID != "none" {
		g.Pod.UID = cmp.Or(v.UID, "pod1")
	}
	return g
}

// SidecarState builds the input of sidecar.Decide.
func (sc *SidecarScene) SidecarState(t testing.TB) *sidecar.State {
	t.Helper()
	if sc.Node.Ready == "" {
		sc.Node.Ready = "True"
	}
	if sc.Alerts == nil {
		sc.Alerts = []Alert{{}}
	}
	for i := range sc.Alerts {
		sc.Alerts[i].Policy = cmp.Or(sc.Alerts[i].Policy, "sidecar-not-ready")
	}
	sc.Policy.For, sc.Policy.ProofFor, sc.Policy.Cooldown = cmp.Or(sc.Policy.For, "0s"), cmp.Or(sc.Policy.ProofFor, "0s"), cmp.Or(sc.Policy.Cooldown, "0s")
	if sc.Policy.Plan == nil {
		sc.Policy.Plan = []string{"mark-ready 3"}
	}
	if sc.Provided == nil {
		sc.Provided = []string{"reboot", "mark-ready"}
	}
	s := sc.State(t)
	s.Config.SidecarProviders, s.Config.Limits.Sidecars = map[string]bool{cmp.Or(sc.Provider, "sei"): true}, 10
	for _, p := range s.Config.Policies {
		p.Name, p.Kind, p.Labels = "sidecar-not-ready", remediations.KindSidecar, []string{"namespace", "pod"}
		for i := range p.Plan {
			p.Plan[i].Wait, p.Plan[i].Provider = time.Minute, "sei"
		}
	}
	n := s.Node
	for _, a := range remediations.AlertsOn(n.Annotations) {
		a.Name, a.Labels = "SidecarNotReady", map[string]string{"namespace": "sei", "pod": "a-0"}
		n.Annotations[a.Key()] = a.Encode()
	}
	Annotate(t, n, remediations.SidecarKey(ThePod), sc.Sidecar)
	for _, r := range sc.Beside {
		b, err := yaml.Marshal(r)
		require.NoError(t, err)
		var beside remediations.Record
		require.NoError(t, yaml.Unmarshal(b, &beside))
		Annotate(t, n, remediations.SidecarKey(*beside.Pod), r)
	}
	if missing := sc.Bytes - remediations.OwnBytes(n.Annotations) - len(remediations.AlertPrefix); missing > 0 {
		n.Annotations[remediations.AlertPrefix] = strings.Repeat("x", missing)
	}
	s.Journal = remediations.ReadJournal(n)
	out := &sidecar.State{State: s, Seen: sc.Sighting.sighting(), Busy: sc.Elsewhere, NewTask: NewTask}
	out.LookTook = took(t, sc.Sighting.Took)
	out.Key, out.Name = remediations.SidecarKey(ThePod), ThePod.String()
	for _, one := range s.Config.Subjects(remediations.KindSidecar, s.Journal) {
		if one.Key == out.Key {
			out.Subject = one
		} else if one.Record != nil && one.Record.Phase.InFlight() {
			out.Busy++
		}
	}
	return out
}

func (g Golden) SidecarState(t testing.TB) *sidecar.State {
	t.Helper()
	text, err := os.ReadFile(g.Input)
	require.NoError(t, err)
	return ReadSidecar(t, string(text)).SidecarState(t)
}

func ReadSidecar(t testing.TB, text string) *SidecarScene {
	t.Helper()
	sc := &SidecarScene{}
	require.NoError(t, yaml.UnmarshalStrict(Moments(t, []byte(text)), sc))
	return sc
}

// SidecarRecord returns the record of a sidecar's repair whose attempt began twenty seconds ago.
func SidecarRecord(p remediations.Phase) *remediations.Record {
	pod, began := ThePod, Noon.Add(-20*time.Second)
	pod.UID = "pod1"
	return &remediations.Record{
		V: 1, ID: "r1", Policy: "sidecar-not-ready", Cause: remediations.Cause{Alert: FP}, Pod: &pod, Phase: p, Step: remediations.StepRef{Name: "mark-ready", Attempt: 1},
		Done: remediations.Attempts{{Name: "mark-ready", Number: 1}}, Began: began, Since: began, Deadline: began.Add(time.Minute),
		Intent: &remediations.Intent{ID: "r1-0-1", At: began, UID: "pod1", Task: "t1"},
	}
}
