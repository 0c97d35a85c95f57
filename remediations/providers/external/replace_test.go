package external

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/testing/providertest"
)

const machineDeletion = "MachineDeletionRemediation"

// replacing is a world with OpenShift's Machine API and a MachineSet of two Machines: those of the
// world's Nodes.
func (w *world) replacing() *world {
	w.template(remediations.MachineDeletion, m{"template": m{"spec": m{}}})
	w.openshift.Create("MachineSet", w.named1("pool"), nil, m{"replicas": 2}, m{"replicas": 2})
	for _, of := range []struct {
		*engine.Machine
		name string
	}{{&w.one, "one"}, {&w.two, "two"}} {
		of.Template, of.ProviderID = w.named(remediations.MachineDeletion), "aws:///"+w.Name+"/i-"+of.name
		w.PatchNode(of.Node, m{"spec": m{"providerID": of.ProviderID}, "metadata": m{"annotations": m{machineKey: machines + "/" + w.named1(of.name)}}})
		w.shift(of.name, of.Node, of.ProviderID)
	}
	return w
}

// named1 is the name of an object that all worlds have in one namespace.
func (w *world) named1(of string) string { return w.Name + "-" + of }

// shift makes a Machine of the MachineSet, with a finalizer like the Machine API's.
func (w *world) shift(name, node, providerID string) {
	set := w.openshift.Get("MachineSet", w.named1("pool"))
	w.openshift.Create("Machine", w.named1(name), m{
		"finalizers": []any{"machine.machine.openshift.io"}, "annotations": m{phaseKey: "running"},
		"ownerReferences": []any{m{"apiVersion": machineVersion, "kind": "MachineSet", "name": set.GetName(), "uid": set.GetUID(), "controller": true}},
	}, m{"providerID": providerID}, m{"nodeRef": m{"name": node}, "phase": "Running"})
}

// gone removes a Machine.
func (w *world) gone(name string) { w.openshift.Delete("Machine", w.named1(name)) }

// fresh makes a Machine that is younger than all others, by the whole seconds of the API server's
// clock.
func (w *world) fresh(name string) {
	made := w.openshift.Get("Machine", w.named1("two")).GetCreationTimestamp()
	require.Eventually(w.T, func() bool { return time.Now().Unix() > made.Unix() }, 5*time.Minute, 5*time.Millisecond)
	w.shift(name, w.named1("new"), w.newID())
}

func (w *world) newID() string { return "aws:///" + w.Name + "/i-new" }

// TestConformanceOfReplace tests external-replace against the contract of all providers, at a real
// API server.
func TestConformanceOfReplace(t *testing.T) {
	server := providertest.APIServer(t, lab.Shared(t).AdminConfig(), metav1.StatusReasonAlreadyExists)
	var ready chan *world
	providertest.Run(t, providertest.Provider{
		Slow: true,
		// The Node, the template, whether the kind has an object about the Node, the Machines, the
		// MachineSet: a machine will be deleted, so each is read again. All are answers of API
		// servers, which are rarely slow.
		AnswersBefore: 5,
		DoesNotApply: map[string]string{
			"testimony":                    "a remediator is not asked whether a machine runs",
			"exchanged at the last moment": "a remediator knows its Node by its name alone; the look right before it is all there is",
		},
		Start: func(c testing.TB, timeout time.Duration) providertest.World {
			if len(ready) == 0 {
				ready = build(t, 24)
			}
			w := <-ready
			w.T, w.openshift.T = c, c
			w.replacing()
			wire := providertest.NewHTTP(c, server)
			again := func() engine.Actuator {
				return Replacer{w.remediator(func(o *Options) { o.API, o.Timeout = &rest.Config{Host: wire.URL(), BearerToken: token}, timeout }).Client}
			}
			return providertest.World{
				Actuator: again(), Again: again, Wire: wire, Secrets: []string{token},
				Close: func() {
					wire.Close()
					w.end()
				},
				Machine: w.one, Neighbour: w.two, ID: w.one.Node, NeighbourID: w.two.Node,
				Changed: func() []string { return w.asked(machineDeletion) }, Set: w.sceneOfReplace, Stage: w.stage,
			}
		},
	})
}

// end removes the Machines, which all worlds have in one namespace.
func (w *world) end() {
	for _, one := range w.openshift.List("Machine", "") {
		if strings.HasPrefix(one.GetName(), w.Name+"-") {
			w.openshift.Delete("Machine", one.GetName())
		}
	}
}

func (w *world) sceneOfReplace(which providertest.Scene) engine.Machine {
	switch which {
	case providertest.NoMachine:
		w.gone("one")
	case providertest.TwoMachines:
		w.shift("twin", w.one.Node, "aws:///x")
	case providertest.AnotherOfItsName:
		w.gone("one")
		w.shift("one", w.one.Node, "aws:///x")
	case providertest.ItsIDIsAnothers:
		w.openshift.Patch("Machine", w.named1("one"), m{"status": m{"nodeRef": m{"name": "another"}}}, "status")
	}
	return w.one
}

func (w *world) stage(which providertest.Stage) []string {
	seen := func(replicas int) {
		w.openshift.Patch("MachineSet", w.named1("pool"), m{"status": m{"replicas": replicas}}, "status")
	}
	switch which {
	case providertest.Wanted: // the provider promises another machine
	case providertest.OldLingers:
	case providertest.NewFirst:
		w.fresh("new")
	case providertest.Holes:
		w.fresh("new")
		w.gone("one")
		w.gone("two")
	case providertest.Nothing:
		w.gone("one")
		w.gone("two")
		w.openshift.Delete("MachineSet", w.named1("pool"))
	case providertest.OldGone:
		w.gone("one")
		seen(1)
	case providertest.NameAgain:
		w.gone("one")
		w.fresh("one")
	case providertest.Whole:
		w.fresh("new")
		w.gone("one")
	}
	return []string{w.newID()}
}

// TestWhatStandsAgainstAReplacement is reported by the survey, and refused.
func TestWhatStandsAgainstAReplacement(t *testing.T) {
	machine := func(w *world, change m, of ...string) { w.openshift.Patch("Machine", w.named1("one"), change, of...) }
	for name, tc := range map[string]struct {
		set  func(w *world)
		says string
	}{
		"nothing": {set: func(*world) {}},
		"the remediator would delete another Machine": {func(w *world) {
			w.PatchNode(w.one.Node, m{"metadata": m{"annotations": m{machineKey: machines + "/" + w.named1("two")}}})
		}, "so the remediator would delete another Machine"},
		"no annotation": {func(w *world) {
			w.PatchNode(w.one.Node, m{"metadata": m{"annotations": m{machineKey: nil}}})
		}, "annotation machine.openshift.io/machine is \"\""},
		"nobody's Machine": {func(w *world) { machine(w, m{"metadata": m{"ownerReferences": nil}}) }, "does not belong to a MachineSet"},
		"going": {func(w *world) {
			require.NoError(w.T, w.openshift.Of("Machine").Delete(context.WithoutCancel(w.T.Context()), w.named1("one"), metav1.DeleteOptions{}))
		}, "is already being deleted"},
		"no MachineSet": {func(w *world) { w.openshift.Delete("MachineSet", w.named1("pool")) }, "no longer exists"},
		"fewer are wanted": {func(w *world) {
			w.openshift.Patch("MachineSet", w.named1("pool"), m{"spec": m{"replicas": 1}})
		}, "has 2 Machines and should have 1"},
		"somebody's object": {func(w *world) { w.Create(machineDeletion, w.one.Node, nil, m{}, nil) }, "already exists, and Drydock did not make it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).replacing()
			t.Cleanup(w.end)
			r := Replacer{w.remediator(nil).Client}
			on := w.one
			on.Before = r.Survey(t.Context(), on).Before
			tc.set(w)
			said := r.Survey(t.Context(), on)
			outcome, err := r.Act(t.Context(), on, yes)
			if tc.says == "" {
				require.Empty(t, said.Trouble)
				require.NoError(t, err)
				require.Equal(t, []string{on.Node}, w.asked(machineDeletion))
				return
			}
			require.Contains(t, said.Trouble, tc.says)
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, tc.says)
			require.Empty(t, w.asked(machineDeletion))
		})
	}
}

// TestAMachineDeletionIsProvenByAnotherMachine: the remediator's Succeeded proves nothing while the
// old Machine exists. The end of the old Machine proves nothing before another one has come.
func TestAMachineDeletionIsProvenByAnotherMachine(t *testing.T) {
	w := newWorld(t).replacing()
	t.Cleanup(w.end)
	on := w.one
	r := Replacer{w.remediator(func(o *Options) { o.Templates = []remediations.Template{on.Template} }).Client}
	on.Before = r.Survey(t.Context(), on).Before
	outcome, err := r.Act(t.Context(), on, yes)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	replaced := func() remediations.Replacement {
		said, err := r.Replaced(t.Context(), on.Before)
		require.NoError(t, err)
		return said
	}
	ended := Ender{r.Client, nil}

	// The remediator finds the Machine by the Node's annotation, and reports success before
	// anything is gone.
	w.Patch(machineDeletion, on.Node, m{"status": m{"conditions": []any{m{"type": "Succeeded", "status": "True", "reason": "MachineDeleted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}}, "status")
	require.Contains(t, replaced().Missing, "still exists: nothing has deleted it yet")
	node, err := lab.Shared(t).Client().CoreV1().Nodes().Get(t.Context(), on.Node, metav1.GetOptions{})
	require.NoError(t, err)
	name := strings.TrimPrefix(node.Annotations[machineKey], machines+"/")
	require.NoError(t, w.openshift.Of("Machine").Delete(t.Context(), name, metav1.DeleteOptions{}))
	said := replaced()
	require.False(t, said.MachineGone)
	require.Contains(t, said.Missing, `its instance is "running"`)

	// The Machine API ends the instance and deletes the Node, and the MachineSet makes another
	// Machine.
	w.DropNode(on.Node)
	w.gone("one")
	said = replaced()
	require.False(t, said.MachineGone, "the MachineSet has seen two, and one is listed")
	w.openshift.Patch("MachineSet", w.named1("pool"), m{"status": m{"replicas": 1}}, "status")
	said = replaced()
	require.True(t, said.MachineGone)
	require.Contains(t, said.Missing, "has no new Machine with a Node")
	require.NoError(t, ended.End(t.Context()))
	require.Nil(t, w.Get(machineDeletion, on.Node), "the Node is gone, so nobody needs the object any more")
	w.fresh("new")
	require.Equal(t, remediations.Replacement{MachineGone: true, Successors: []string{w.newID()}}, replaced())
}
