package annotation

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/space"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/annotation/settings"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Options{Components: lab.APIServerOnly}) }

// rebootKey is Metal3's.
const rebootKey = "reboot.metal3.io"

// m is an object, or a part of one.
type m = map[string]any

var kinds sync.Once

// world is a namespace with two hosts, host-a and host-b, each with its Machine and its Node.
type world struct {
	*space.Space
	a, b engine.Machine
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return <-build(t, 1)
}

// build makes worlds side by side.
func build(t testing.TB, many int) chan *world {
	t.Helper()
	kinds.Do(func() { require.NoError(t, lab.Shared(t).AddMetal3Kinds(context.WithoutCancel(t.Context()))) })
	resources := map[string]schema.GroupVersionResource{"BareMetalHost": lab.BareMetalHosts, "Machine": lab.CAPIMachines}
	return space.Make(t, "metal", many, resources, func(s *space.Space) *world {
		w := &world{Space: s}
		w.a, w.b = w.machine("a"), w.machine("b")
		w.a.Attempt, w.b.Attempt = "abcdef-0-1", "fedcba-0-1"
		return w
	})
}

// machine makes a host, its Machine and its Node.
func (w *world) machine(name string) engine.Machine {
	of := engine.Machine{Node: w.Name + "-" + name}
	id, err := lab.Shared(w.T).AddBareMetal(context.WithoutCancel(w.T.Context()), w.Name, name, of.Node)
	require.NoError(w.T, err)
	n := w.Node(of.Node, id, nil)
	of.ProviderID, of.UID = id, string(n.UID)
	return of
}

func (w *world) host(name, consumer string) {
	spec, status := lab.BareMetalHost(w.Name, consumer)
	w.Create("BareMetalHost", name, nil, spec, status)
}

// annotate sets an annotation of host-a by hand; nil: removes it.
func (w *world) annotate(key string, value any) {
	w.Patch("BareMetalHost", "host-a", m{"metadata": m{"annotations": m{key: value}}})
}

// asked returns the hosts whose reboot Drydock requested.
func (w *world) asked() (names []string) {
	for _, one := range w.List("BareMetalHost", "") {
		if a := one.GetAnnotations(); a[rebootKey] != "" && a[remediations.AttemptKey] != "" {
			names = append(names, one.GetName())
		}
	}
	return names
}

// record puts a record of the node's repair on the Node, in that phase; empty: no record.
func record(s *space.Space, of engine.Machine, phase remediations.Phase) {
	var value any
	if phase != "" {
		at := metav1.Now().UTC()
		value = (&remediations.Record{
			V: remediations.RecordVersion, ID: "abcdef", Policy: "p", Cause: remediations.Cause{Alert: "f"}, Phase: phase,
			Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: at, Since: at, Deadline: at,
			Intent: &remediations.Intent{ID: of.Attempt, At: at}, Done: remediations.Attempts{{Name: "reboot", Number: 1}},
		}).Encode()
	}
	n := s.PatchNode(of.Node, m{"metadata": m{"annotations": m{remediations.NodeRepairKey: value}}})
	require.NoError(s.T, remediations.ReadJournal(n).Malformed)
}

// rebooter is the provider with the preset metal3. A nil api: the administrator's.
func (w *world) rebooter(api *rest.Config) Rebooter {
	of := settings.Presets[settings.Metal3]
	of.Preset, of.Namespace = settings.Metal3, w.Name
	return rebooter(w.T, of, api)
}

func rebooter(t testing.TB, of settings.Annotation, api *rest.Config) Rebooter {
	t.Helper()
	if of.Timeout == 0 {
		of.Timeout = 2 * time.Minute
	}
	if api == nil {
		api = lab.Shared(t).AdminConfig()
	}
	c, err := New(of, api)
	require.NoError(t, err)
	return Rebooter{c}
}

func yes() error { return nil }
