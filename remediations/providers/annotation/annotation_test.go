package annotation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/space"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/annotation/settings"
	"drydock.dev/drydock/remediations/testing/providertest"
)

// onNode is an annotation on the Node, with an answer.
var onNode = settings.Annotation{Key: "example.com/reboot", Value: "now", Done: "example.com/rebooted"}

// onMachine is an annotation on Cluster API's Machine, as one kind of objects that own machines.
func onMachine(namespace string) settings.Annotation {
	of := onNode
	of.Object, of.Namespace = &settings.Object{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine"}, namespace
	return of
}

// nodes are two Nodes. Each has a Machine.
type nodes struct {
	*space.Space
	a, b engine.Machine
}

func newNodes(t testing.TB) *nodes {
	t.Helper()
	return <-buildNodes(t, 1)
}

func buildNodes(t testing.TB, many int) chan *nodes {
	t.Helper()
	kinds.Do(func() { require.NoError(t, lab.Shared(t).AddMetal3Kinds(context.WithoutCancel(t.Context()))) })
	return space.Make(t, "anno", many, map[string]schema.GroupVersionResource{"Machine": lab.CAPIMachines}, func(s *space.Space) *nodes {
		w := &nodes{Space: s}
		w.a, w.b = w.machine("a"), w.machine("b")
		w.a.Attempt, w.b.Attempt = "abcdef-0-1", "fedcba-0-1"
		return w
	})
}

func (w *nodes) machine(name string) engine.Machine {
	of := engine.Machine{Node: w.Name + "-" + name, ProviderID: "rack://" + w.Name + "/" + name}
	spec, status := lab.BareMetalMachine(of.Node, of.ProviderID, "x")
	w.Create("Machine", "machine-"+name, nil, spec, status)
	of.UID = string(w.Node(of.Node, of.ProviderID, nil).UID)
	return of
}

func (w *nodes) node(name string) *corev1.Node {
	n, err := lab.Shared(w.T).Client().CoreV1().Nodes().Get(context.WithoutCancel(w.T.Context()), name, metav1.GetOptions{})
	require.NoError(w.T, err)
	return n
}

// cached returns the Nodes as Drydock's cache has them: without who set what.
func (w *nodes) cached(context.Context) ([]*corev1.Node, error) {
	out := []*corev1.Node{w.node(w.a.Node), w.node(w.b.Node)}
	for _, n := range out {
		n.ManagedFields = nil
	}
	return out, nil
}

// annotated sets annotations of the Node by hand; nil removes one.
func (w *nodes) annotated(annotations m) {
	w.PatchNode(w.a.Node, m{"metadata": m{"annotations": annotations}})
}

// asked returns the Nodes whose reboot Drydock requested, without those that were deleted.
func (w *nodes) asked() (names []string) {
	for _, name := range []string{w.a.Node, w.b.Node} {
		n, err := lab.Shared(w.T).Client().CoreV1().Nodes().Get(context.WithoutCancel(w.T.Context()), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		require.NoError(w.T, err)
		if a := n.Annotations; a[onNode.Key] == onNode.Value && a[remediations.AttemptKey] != "" {
			names = append(names, name)
		}
	}
	return names
}

func (w *nodes) act(r Rebooter, on engine.Machine) {
	w.T.Helper()
	require.Empty(w.T, r.Survey(w.T.Context(), on).Trouble)
	outcome, err := r.Act(w.T.Context(), on, yes)
	require.NoError(w.T, err)
	require.Equal(w.T, remediations.CallAccepted, outcome)
}

// TestANodeIsAskedToRebootOnce: until the controller removes the annotation or says that it is
// done, nothing more is requested. A soft reboot has the same value, because there is no other.
func TestANodeIsAskedToRebootOnce(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]m{"it removes the annotation": {onNode.Key: nil}, "it says that it is done": {onNode.Done: "yes"}} {
		w := newNodes(t)
		r, soft := rebooter(t, onNode, nil), w.a
		soft.Soft = true
		w.act(r, soft)
		require.Equal(t, []string{w.a.Node}, w.asked())
		require.Equal(t, w.a.Attempt, w.node(w.a.Node).Annotations[remediations.AttemptKey])

		require.Contains(t, r.Survey(t.Context(), w.a).Trouble, `(annotation "example.com/reboot")`)
		outcome, err := r.Act(t.Context(), w.a, yes)
		require.Equal(t, remediations.CallRefused, outcome)
		require.ErrorIs(t, err, engine.ErrLater)

		w.annotated(answer)
		next := w.a
		next.Attempt = "abcdef-0-2"
		w.act(r, next)
		require.Equal(t, next.Attempt, w.node(w.a.Node).Annotations[remediations.AttemptKey], name)
		require.NotContains(t, w.node(w.a.Node).Annotations, onNode.Done, "the answer was about the first request")
	}
}

// TestANodeThatChangedSinceTheLookIsNotWrittenOver, and the attempt may be made again: nothing was
// done.
func TestANodeThatChangedSinceTheLookIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	w := newNodes(t)
	outcome, err := rebooter(t, onNode, nil).Act(t.Context(), w.a, func() error {
		w.annotated(m{onNode.Key: "by hand"})
		return nil
	})
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorIs(t, err, engine.ErrLater)
	require.Equal(t, "by hand", w.node(w.a.Node).Annotations[onNode.Key])
	require.NotContains(t, w.node(w.a.Node).Annotations, remediations.AttemptKey)
}

// TestARequestOnANodeIsRemoved when its attempt has ended, together with the answer. What a person
// set stays.
func TestARequestOnANodeIsRemoved(t *testing.T) {
	t.Parallel()
	w := newNodes(t)
	r := rebooter(t, onNode, nil)
	e := Ender{Client: r.Client, Nodes: w.cached}
	w.act(r, w.a)
	for _, under := range []remediations.Phase{remediations.PhaseActing, remediations.PhaseVerifying} {
		record(w.Space, w.a, under)
		require.NoError(t, e.End(t.Context()))
		require.Equal(t, []string{w.a.Node}, w.asked(), under)
	}
	w.annotated(m{onNode.Done: "yes"})
	record(w.Space, w.a, "")
	require.NoError(t, e.End(t.Context()))
	require.Empty(t, w.node(w.a.Node).Annotations)

	w.act(r, w.a)
	w.annotated(m{onNode.Key: nil}) // as the controller does
	w.annotated(m{onNode.Key: "by hand"})
	require.NoError(t, e.End(t.Context()))
	require.Equal(t, map[string]string{onNode.Key: "by hand"}, w.node(w.a.Node).Annotations)
	w.annotated(m{remediations.AttemptKey: "mine"})
	require.NoError(t, e.End(t.Context()))
	require.Equal(t, map[string]string{onNode.Key: "by hand", remediations.AttemptKey: "mine"}, w.node(w.a.Node).Annotations, "what a person calls Drydock's is not")
}

// TestTheObjectThatOwnsAMachineIsAsked, if it alone has the Node's provider ID and names no other
// Node.
func TestTheObjectThatOwnsAMachineIsAsked(t *testing.T) {
	t.Parallel()
	w := newNodes(t)
	r := rebooter(t, onMachine(w.Name), nil)
	w.Patch("Machine", "machine-a", m{"metadata": m{"labels": m{"app.kubernetes.io/managed-by": "Helm"}}})
	w.act(r, w.a)
	machine := w.Get("Machine", "machine-a")
	require.Equal(t, map[string]string{onNode.Key: "now", remediations.AttemptKey: w.a.Attempt, nodeKey: w.a.Node}, machine.GetAnnotations())
	require.Equal(t, "Helm", machine.GetLabels()["app.kubernetes.io/managed-by"])
	require.Empty(t, w.node(w.a.Node).Annotations)
	require.NoError(t, Ender{Client: r.Client}.End(t.Context()))
	machine = w.Get("Machine", "machine-a")
	require.Empty(t, machine.GetAnnotations())
	require.Equal(t, map[string]string{"app.kubernetes.io/managed-by": "Helm"}, machine.GetLabels())

	for want, change := range map[string]func(*nodes){
		"and Machine": func(w *nodes) {
			spec, status := lab.BareMetalMachine(w.b.Node, w.a.ProviderID, "x")
			w.Create("Machine", "machine-c", nil, spec, status)
		},
		"": func(w *nodes) {
			w.Patch("Machine", "machine-a", m{"status": m{"nodeRef": m{"name": "another"}}}, "status")
		},
		"has the spec.providerID of the Node": func(w *nodes) { w.Delete("Machine", "machine-a") },
		"is being deleted": func(w *nodes) {
			w.Patch("Machine", "machine-a", m{"metadata": m{"finalizers": []string{"example.com/stays"}}})
			require.NoError(w.T, w.Of("Machine").Delete(context.WithoutCancel(w.T.Context()), "machine-a", metav1.DeleteOptions{}))
		},
	} {
		w := newNodes(t)
		r := rebooter(t, onMachine(w.Name), nil)
		require.Empty(t, r.Survey(t.Context(), w.a).Trouble, "the control")
		change(w)
		require.Contains(t, r.Survey(t.Context(), w.a).Trouble, want)
	}
	alone := w.a
	alone.ProviderID = ""
	require.Contains(t, r.Survey(t.Context(), alone).Trouble, "has no spec.providerID")
}

// TestConformance tests an annotation on the Node against the contract of all providers, at a real
// API server.
func TestConformance(t *testing.T) {
	server := providertest.APIServer(t, lab.Shared(t).AdminConfig(), metav1.StatusReasonConflict)
	var ready chan *nodes
	providertest.Run(t, providertest.Provider{
		Slow: true,
		DoesNotApply: map[string]string{
			"testimony":                      "nobody is asked for a witness",
			"replacement":                    "nothing is replaced",
			"slow":                           "its other side is the API server: where that is slow for seconds, nothing of Drydock works",
			string(providertest.TwoMachines): "no two Nodes have one name",
		},
		Start: func(c testing.TB, timeout time.Duration) providertest.World {
			if len(ready) == 0 {
				ready = buildNodes(t, 24)
			}
			w := <-ready
			w.T = c
			wire := providertest.NewHTTP(c, server)
			again := func() engine.Actuator {
				of := onNode
				of.Timeout = timeout
				return rebooter(c, of, &rest.Config{Host: wire.URL(), BearerToken: token})
			}
			return providertest.World{
				Actuator: again(), Again: again, Wire: wire, Close: wire.Close, Secrets: []string{token},
				Machine: w.a, Neighbour: w.b, ID: w.a.Node, NeighbourID: w.b.Node,
				Changed: w.asked, Set: w.scene,
			}
		},
	})
}

func (w *nodes) scene(which providertest.Scene) engine.Machine {
	switch which {
	case providertest.NoMachine:
		w.DropNode(w.a.Node)
	case providertest.AnotherOfItsName:
		w.DropNode(w.a.Node)
		w.Node(w.a.Node, w.a.ProviderID, nil)
	case providertest.ItsIDIsAnothers:
		of := w.a
		of.ProviderID = w.b.ProviderID
		return of
	case providertest.TwoMachines: // no two Nodes have one name
	}
	return w.a
}
