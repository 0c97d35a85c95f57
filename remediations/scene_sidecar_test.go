package remediations

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// sidecarScene is a SidecarState in a form that a person can read. What it leaves out is as on an ordinary bad day: the
// sidecar of pod sei/a-0 on n1, a healthy node, waits since its pod was replaced; its alert has been firing for ten
// minutes, both Alertmanagers say so, nobody objects, the mode is enforce, and it was seen a second ago.
type sidecarScene struct {
	scene
	// Sidecar is the record of its repair, Beside those of the other sidecars of the node.
	Sidecar any   `json:"sidecar"`
	Beside  []any `json:"beside"`
	// Sighting is what was seen of it.
	Sighting sceneSighting `json:"sighting"`
	// Elsewhere counts the sidecars under repair on other nodes.
	Elsewhere int `json:"elsewhere"`
	// Provider is the configured provider of sidecars; absent: sei.
	Provider string `json:"provider"`
	// Bytes are so many that the Node carries of Drydock's already.
	Bytes int `json:"bytes"`
}

type sceneSighting struct {
	Never   bool   `json:"never"`
	Started string `json:"started"` // none: not known
	Age     string `json:"age"`
	UID     string `json:"uid"` // none: there is no such pod
	Node    string `json:"node"`
	Health  Health `json:"health"`
	Held    string `json:"held"`
	Unknown string `json:"unknown"`
	Detail  string `json:"detail"`
}

// thePod is whose sidecar every scene is about.
var thePod = Pod{Namespace: "sei", Name: "a-0"}

const newTask = "6f1b7c1e-7f4c-4d6a-9a53-2d6a0c3e9f10"

func (v *sceneSighting) sighting() *Sighting {
	if v.Never {
		return nil
	}
	g := &Sighting{At: ago(v.Age, "1s"), Pod: thePod, Node: cmp.Or(v.Node, "n1"), Health: v.Health, Held: v.Held, Unknown: v.Unknown, Detail: v.Detail}
	g.Owner = Object{APIVersion: "sei.io/v1alpha1", Kind: "SeiNode", Namespace: "sei", Name: "a"}
	if v.Health == "" && v.Held == "" && v.Unknown == "" {
		g.Health = HealthNotReady
	}
	if v.Started != "none" {
		g.StartedAt = ago(v.Started, "5m")
	}
	if v.UID != "none" {
		g.Pod.UID = cmp.Or(v.UID, "pod1")
	}
	return g
}

// sidecarState builds what DecideSidecar is given.
func (sc *sidecarScene) sidecarState(t testing.TB) *SidecarState {
	t.Helper()
	if sc.Node.Ready == "" {
		sc.Node.Ready = "True"
	}
	if sc.Alerts == nil {
		sc.Alerts = []sceneAlert{{}}
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
	s := sc.state(t)
	s.Config.SidecarProviders, s.Config.Limits.Sidecars = map[string]bool{cmp.Or(sc.Provider, "sei"): true}, 10
	for _, p := range s.Config.Policies {
		p.Name, p.Kind, p.Labels = "sidecar-not-ready", KindSidecar, []string{"namespace", "pod"}
		for i := range p.Plan {
			p.Plan[i].Wait, p.Plan[i].Provider = time.Minute, "sei"
		}
	}
	n := s.Node
	for _, a := range AlertsOn(n.Annotations) {
		a.Name, a.Labels = "SidecarNotReady", map[string]string{"namespace": "sei", "pod": "a-0"}
		n.Annotations[a.Key()] = a.Encode()
	}
	annotate(t, n, SidecarKey(thePod), sc.Sidecar)
	for _, r := range sc.Beside {
		b, err := yaml.Marshal(r)
		require.NoError(t, err)
		var beside Record
		require.NoError(t, yaml.Unmarshal(b, &beside))
		annotate(t, n, SidecarKey(*beside.Pod), r)
	}
	if missing := sc.Bytes - OwnBytes(n.Annotations) - len(AlertPrefix); missing > 0 {
		n.Annotations[AlertPrefix] = strings.Repeat("x", missing)
	}
	s.Journal = ReadJournal(n)
	out := &SidecarState{Target: Target{State: s}, Sighting: sc.Sighting.sighting(), Busy: sc.Elsewhere, NewTask: newTask}
	out.Key, out.Name = SidecarKey(thePod), thePod.String()
	for _, one := range s.Config.Subjects(KindSidecar, s.Journal) {
		if one.Key == out.Key {
			out.Subject = one
		} else if one.Record != nil && one.Record.Phase.InFlight() {
			out.Busy++
		}
	}
	return out
}

func (g golden) sidecarState(t testing.TB) *SidecarState {
	t.Helper()
	text, err := os.ReadFile(g.input)
	require.NoError(t, err)
	return readSidecarScene(t, string(text)).sidecarState(t)
}

func readSidecarScene(t testing.TB, text string) *sidecarScene {
	t.Helper()
	sc := &sidecarScene{}
	require.NoError(t, yaml.UnmarshalStrict(moments(t, []byte(text)), sc))
	return sc
}
