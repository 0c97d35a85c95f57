package external

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/space"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/external/settings"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Options{Components: lab.APIServerOnly}) }

// m is an object, or a part of one.
type m = map[string]any

var kinds sync.Once

// world is a namespace with a template, and two Nodes.
type world struct {
	*space.Space
	// openshift is the namespace of the Machine API's Machines, which all worlds share.
	openshift *space.Space
	one, two  engine.Machine
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return <-build(t, 1)
}

var (
	versions  = ownVersions()
	openshift = map[string]schema.GroupVersionResource{"Machine": lab.OpenShiftMachines, "MachineSet": lab.OpenShiftMachineSets}
)

func ownVersions() map[string]schema.GroupVersionResource {
	out := map[string]schema.GroupVersionResource{"Machine": lab.CAPIMachines}
	for kind, of := range lab.Remediations {
		out[kind], out[kind+"Template"] = of.WithResource(plural(kind)), of.WithResource(plural(kind+"Template"))
	}
	out["StrangersRemediation"], out["StrangersRemediationTemplate"] = strangers.WithResource("strangersremediations"), strangers.WithResource("strangersremediationtemplates")
	return out
}

// strangers is a remediator that Drydock does not know. Drydock requires nothing of its template.
var strangers = schema.GroupVersion{Group: "strangers.example", Version: "v1"}

// build makes worlds side by side.
func build(t testing.TB, many int) chan *world {
	t.Helper()
	kinds.Do(func() {
		l, ctx := lab.Shared(t), context.WithoutCancel(t.Context())
		require.NoError(t, l.AddRemediatorKinds(ctx))
		require.NoError(t, l.AddClusterAPIKinds(ctx))
		require.NoError(t, l.AddOpenShiftMachineKinds(ctx))
		require.NoError(t, l.AddAnyKinds(ctx, strangers, "StrangersRemediation", "StrangersRemediationTemplate"))
	})
	return space.Make(t, "remediators", many, versions, func(s *space.Space) *world {
		w := &world{Space: s, openshift: s.In(machines, openshift)}
		w.template("SelfNodeRemediationTemplate", m{"template": m{"spec": m{"remediationStrategy": "Automatic"}}})
		w.one, w.two = w.node(w.Name+"-a"), w.node(w.Name+"-b")
		w.one.Attempt, w.two.Attempt = "abcdef-0-1", "fedcba-0-1"
		return w
	})
}

func (w *world) template(kind string, spec m) { w.Create(kind, "own", nil, spec, nil) }

// named is the template of that kind as a plan names it.
func (w *world) named(kind string) remediations.Template {
	return remediations.Template{APIVersion: versions[kind].GroupVersion().String(), Kind: kind, Namespace: w.Name, Name: "own"}
}

// node makes a Node of that name, whose agent could reboot it.
func (w *world) node(name string) engine.Machine {
	n := w.Node(name, "", map[string]string{rebootableKey: "true"})
	return engine.Machine{Node: name, UID: string(n.UID), Template: w.named("SelfNodeRemediationTemplate")}
}

// asked returns the Nodes that have an object of Drydock's of that kind.
func (w *world) asked(kind string) (nodes []string) {
	for _, one := range w.List(kind, madeLabel+"="+madeBy) {
		nodes = append(nodes, one.GetAnnotations()[nodeKey])
	}
	return nodes
}

func (w *world) remediator(change func(*Options)) Remediator {
	o := Options{External: settings.External{Timeout: 2 * time.Minute}, API: lab.Shared(w.T).AdminConfig(), Now: time.Now}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(w.T, err)
	return Remediator{c}
}

func yes() error { return nil }
