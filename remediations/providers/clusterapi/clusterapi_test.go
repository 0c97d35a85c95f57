package clusterapi

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/clusterapi/settings"
)

func yes() error { return nil }

// ask surveys and acts, as the engine does.
func (w *world) ask(r Replacer, of engine.Machine) (remediations.CallOutcome, error) {
	w.T.Helper()
	said := r.Survey(w.T.Context(), of)
	require.Empty(w.T, said.Trouble)
	of.Before = said.Before
	return r.Act(w.T.Context(), of, yes)
}

// TestEachWayAsksOnce: what is written to the Machine, and its field manager. Conditions from other
// writers stay.
func TestEachWayAsksOnce(t *testing.T) {
	for name, c := range map[string]struct {
		check, delete bool
		annotated     string
		marked, going bool
	}{
		"a health check":                 {check: true, annotated: node1.Attempt},
		"a health check, and deletion":   {check: true, delete: true, annotated: node1.Attempt},
		"none":                           {marked: true},
		"none, and Machines are deleted": {delete: true, going: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.check {
				w.check("workers", nil)
			}
			outcome, err := w.ask(w.replacer(func(o *Options) { o.WithoutHealthCheck = deletes(c.delete) }), node1)
			require.NoError(t, err)
			require.Equal(t, remediations.CallAccepted, outcome)
			one := w.Get("Machine", "one")
			require.Equal(t, c.annotated, one.GetAnnotations()[remediateKey])
			require.Equal(t, c.going, one.GetDeletionTimestamp() != nil)
			said := map[string]string{}
			conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
			for _, of := range conditions {
				said[of.(m)["type"].(string)] = of.(m)["status"].(string) + " " + of.(m)["message"].(string)
			}
			want := map[string]string{nodeHealthy: "True "}
			if c.marked {
				want[healthy] = "False Drydock asks for a replacement, attempt " + node1.Attempt
				want[ownerRemedied] = want[healthy]
			}
			require.Equal(t, want, said)
			require.Equal(t, []string{string(one.GetUID())}, w.asked())
		})
	}
}

// TestAMarkTakesThePlaceOfAnOldOne: a health check that is gone may have left the condition that
// the Machine is healthy. What others have written since the look stays, and a list whose order has
// changed is not written to.
func TestAMarkTakesThePlaceOfAnOldOne(t *testing.T) {
	for name, c := range map[string]struct {
		was, by []any
		outcome remediations.CallOutcome
	}{
		"none there":       {nil, nil, remediations.CallAccepted},
		"an old one":       {[]any{condition("Ready", "False", "x", ""), condition(healthy, "True", "HealthCheckSucceeded", "")}, nil, remediations.CallAccepted},
		"another is added": {[]any{condition("Ready", "False", "x", "")}, []any{condition("Ready", "False", "x", ""), condition("UpToDate", "True", "x", "")}, remediations.CallAccepted},
		"another order":    {[]any{condition(healthy, "True", "x", ""), condition("Ready", "False", "x", "")}, []any{condition("Ready", "False", "x", ""), condition(healthy, "True", "x", "")}, remediations.CallRefused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			machineSays(c.was...)(w)
			r := w.replacer(nil)
			late := node1
			late.Before = r.Survey(t.Context(), node1).Before
			outcome, err := r.Act(t.Context(), late, func() error {
				if c.by != nil {
					machineSays(c.by...)(w)
				}
				return nil
			})
			require.Equal(t, c.outcome, outcome, "%v", err)
			all, _, _ := unstructured.NestedSlice(w.Get("Machine", "one").Object, "status", "conditions")
			said := map[string]string{}
			for _, of := range all {
				said[of.(m)["type"].(string)] = of.(m)["status"].(string)
			}
			want := map[string]string{}
			for _, of := range slices.Concat(c.was, c.by) {
				want[of.(m)["type"].(string)] = of.(m)["status"].(string)
			}
			if c.outcome == remediations.CallAccepted {
				want[healthy], want[ownerRemedied] = "False", "False"
			}
			require.Equal(t, want, said)
		})
	}
}

// TestAWriteNamesTheMachineByItsUID: a Machine that differs only in its UID, and appears at the
// last moment, is not touched.
func TestAWriteNamesTheMachineByItsUID(t *testing.T) {
	for _, of := range []way{annotate, mark, remove} {
		t.Run(string(of), func(t *testing.T) {
			w := newWorld(t)
			if of == annotate {
				w.check("workers", nil)
			}
			r := w.replacer(func(o *Options) { o.WithoutHealthCheck = deletes(of == remove) })
			late := node1
			late.Before = r.Survey(t.Context(), node1).Before
			outcome, err := r.Act(t.Context(), late, func() error {
				w.Delete("Machine", "one")
				w.machine("one", "node-1", "lab://1")
				return nil
			})
			require.Equal(t, remediations.CallRefused, outcome, "%v", err)
			require.Empty(t, w.asked())

			outcome, err = r.Act(t.Context(), late, yes) // nor one that appears before the call
			require.Equal(t, remediations.CallRefused, outcome, "%v", err)
			require.ErrorContains(t, err, "but the record has Machine one with the UID")
			require.Empty(t, w.asked())

			outcome, err = w.ask(r, node1)
			require.NoError(t, err, "the control: the new one is surveyed")
			require.Equal(t, remediations.CallAccepted, outcome)
		})
	}
}

// TestWhoseMachineItIs: the Node's ID and the Node in the Machine's status must agree, and no other
// Machine may have either.
func TestWhoseMachineItIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		node   engine.Machine
		says   string
	}{
		"no ID":                       {nil, engine.Machine{Node: "node-1"}, "the Node has no spec.providerID"},
		"no Machine":                  {nil, engine.Machine{Node: "node-2", ProviderID: "lab://2"}, `no Machine of Cluster NS/prod has the Node's spec.providerID "lab://2"`},
		"another ID":                  {nil, engine.Machine{Node: "node-1", ProviderID: "lab://2"}, `Machine NS/one has the Node in status.nodeRef, but its spec.providerID is "lab://1" and the Node's is "lab://2"`},
		"another Node":                {nil, engine.Machine{Node: "node-2", ProviderID: "lab://1"}, `Machine NS/one has the Node's spec.providerID, but its status.nodeRef has the Node "node-1"`},
		"no Node yet":                 {func(w *world) { w.Patch("Machine", "one", m{"status": m{"nodeRef": nil}}, "status") }, node1, `its status.nodeRef has the Node ""`},
		"one by each":                 {nil, engine.Machine{Node: "node-1", ProviderID: "lab://10"}, "could both be the Node's"},
		"a second one by its nodeRef": {func(w *world) { w.machine("twin", "node-1", "lab://7") }, node1, "Machine NS/one and Machine NS/twin could both be the Node's"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.change != nil {
				c.change(w)
			}
			said := w.replacer(nil).Survey(t.Context(), c.node)
			require.Contains(t, said.Trouble, w.named(c.says))
			require.False(t, said.Fleetwide)
			require.Equal(t, remediations.AskMended, said.Again)
		})
	}
}

// TestWhatProvesAReplacement beyond the stages in the contract of all providers.
func TestWhatProvesAReplacement(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		lacks  string // empty: nothing is lacking
		gone   bool
	}{
		"nothing was done":       {func(*world) {}, "the old Machine NS/one still exists: Cluster API has not begun", false},
		"the owner says why not": {machineSays(condition(ownerRemedied, "False", "RemediationDeferred", "too many")), `still exists: OwnerRemediated is False, RemediationDeferred, "too many"`, false},
		"its drain hangs": {func(w *world) {
			w.going("Machine", "one")
			machineSays(condition(deleting, "True", "DrainingNode", "Pod default/db: budget"))(w)
		}, `still exists: Deleting is True, DrainingNode, "Pod default/db: budget"`, false},
		"its infrastructure takes its time": {func(w *world) {
			w.going("Machine", "one")
			machineSays(condition(deleting, "True", "WaitingForInfrastructureDeletion", "x"))(w)
		}, `still exists: Deleting is True, WaitingForInfrastructureDeletion, "x"`, false},
		"the Cluster is paused": {func(w *world) { holdCases["Cluster paused"].make(w); w.Delete("Machine", "one") }, "is paused, perhaps because it moves", false},
		"the Cluster is another": {func(w *world) {
			w.Delete("Cluster", "prod")
			w.Delete("Machine", "one")
			w.Create("Cluster", "prod", nil, m{"controlPlaneEndpoint": m{"host": "192.0.2.1", "port": 6443}}, nil)
		}, "is gone, or another one has its name", false},
		"the MachineSet is another": {func(w *world) { w.Delete("MachineSet", "pool"); w.Delete("Machine", "one"); w.set() }, "MachineSet NS/pool is gone, or another one has its name", false},
		"the new one has no Node": {func(w *world) {
			w.replace("lab://3")
			w.Patch("Machine", "three", m{"status": m{"nodeRef": nil}}, "status")
		}, "MachineSet NS/pool has 1 Machines with a Node, and should have 2; MachineSet NS/pool has no new Machine with a Node", true},
		"the new one is not up": {func(w *world) {
			w.replace("lab://3")
			w.Patch("Machine", "three", m{"status": m{"initialization": m{"infrastructureProvisioned": false}}}, "status")
		}, "has 1 Machines with a Node", true},
		"the new one goes already":   {func(w *world) { w.replace("lab://3"); w.going("Machine", "three") }, "has 1 Machines with a Node", true},
		"the new one has the old ID": {func(w *world) { w.replace("lab://1") }, "has no new Machine with a Node", true},
		"another one is missing": {func(w *world) {
			w.replace("lab://3")
			w.Delete("Machine", "ten")
			w.Patch("MachineSet", "pool", m{"status": m{"replicas": 1}}, "status")
		}, "has 1 Machines with a Node, and should have 2", true},
		"replaced": {func(w *world) { w.replace("lab://3") }, "", true},
		"replaced, and scaled up since": {func(w *world) {
			w.replace("lab://3")
			w.Patch("MachineSet", "pool", m{"spec": m{"replicas": 3}})
		}, "has 2 Machines with a Node, and should have 3", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.replacer(nil)
			kept := r.Survey(t.Context(), node1).Before
			c.change(w)
			said, err := r.Replaced(t.Context(), kept)
			require.NoError(t, err)
			require.Equal(t, c.gone, said.MachineGone, said.Missing)
			require.Equal(t, c.lacks == "", said.Missing == "", said.Missing)
			require.Contains(t, said.Missing, w.named(c.lacks))
			require.Equal(t, map[string]string{"its drain hangs": w.named("Machine NS/one: DrainingNode: Pod default/db: budget")}[name], said.Blocked)
		})
	}
}

// replace removes the old Machine and adds a new one that is up.
func (w *world) replace(providerID string) {
	w.Delete("Machine", "one")
	w.later()
	w.machine("three", "node-3", providerID)
}

// TestAMissingResourceOrRightIsReported, as a problem of all nodes.
func TestAMissingResourceOrRightIsReported(t *testing.T) {
	w := newWorld(t)
	said := w.replacer(func(o *Options) {
		o.API = lab.Shared(t).ConfigAs("somebody")
	}).Survey(t.Context(), node1)
	require.Contains(t, said.Trouble, `the API server refuses Drydock's account, or the account lacks a right (HTTP 403 to GET clusters/prod)`)
	require.Contains(t, said.Trouble, `User \"somebody\" cannot get resource \"clusters\"`)
	require.True(t, said.Fleetwide)

	said = w.replacer(func(o *Options) { o.API.Host += "/apis/elsewhere" }).Survey(t.Context(), node1)
	require.Contains(t, said.Trouble, "does not serve cluster.x-k8s.io/v1beta2 (HTTP 404 to GET clusters/prod); Cluster API 1.11 or later must be installed")
	require.True(t, said.Fleetwide)
}

// TestAListIsReadToItsEnd: the node's Machine may be on the last page, and so may a second one.
func TestAListIsReadToItsEnd(t *testing.T) {
	w := newWorld(t)
	r := w.replacer(nil)
	r.Page = 1
	require.Empty(t, r.Survey(t.Context(), node10).Trouble)
	w.machine("zwilling", "node-7", "lab://10")
	require.Contains(t, r.Survey(t.Context(), node10).Trouble, "could both be the Node's")
}

// TestOptionsThatCannotWork are named.
func TestOptionsThatCannotWork(t *testing.T) {
	of := settings.ClusterAPI{Cluster: types.NamespacedName{Namespace: "ns", Name: "prod"}}
	for says, o := range map[string]Options{
		"there is no API server":            {ClusterAPI: of},
		"must have the form namespace/name": {API: &rest.Config{}, ClusterAPI: settings.ClusterAPI{Cluster: types.NamespacedName{Name: "prod"}}},
		"the timeout is negative":           {API: &rest.Config{}, ClusterAPI: settings.ClusterAPI{Cluster: of.Cluster, Timeout: -time.Second}},
		"no such file":                      {API: &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "missing"}}, ClusterAPI: of},
	} {
		_, err := New(o)
		require.ErrorContains(t, err, says)
	}
	_, err := New(Options{API: &rest.Config{}, ClusterAPI: of})
	require.NoError(t, err, "the control")
}
