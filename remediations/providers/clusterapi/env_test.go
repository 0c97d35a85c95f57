package clusterapi

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/space"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/clusterapi/settings"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Options{Components: lab.APIServerOnly}) }

// m is an object, or a part of one.
type m = map[string]any

// world is a Cluster in a namespace of the API server, with a MachineSet of two Machines: those of
// node-1 and node-10.
type world struct{ *space.Space }

var (
	kinds     sync.Once
	resources = clusterAPI("Cluster", "Machine", "MachineSet", "MachineDeployment", "MachineHealthCheck")
)

func clusterAPI(kinds ...string) map[string]schema.GroupVersionResource {
	out := map[string]schema.GroupVersionResource{}
	for _, kind := range kinds {
		out[kind] = lab.CAPIMachines.GroupVersion().WithResource(strings.ToLower(kind) + "s")
	}
	return out
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return <-build(t, 1, nil)
}

// build makes worlds side by side, each with what more adds.
func build(t testing.TB, many int, more func(*world)) chan *world {
	t.Helper()
	kinds.Do(func() { require.NoError(t, lab.Shared(t).AddClusterAPIKinds(context.WithoutCancel(t.Context()))) })
	return space.Make(t, "capi", many, resources, func(s *space.Space) *world {
		w := &world{s}
		w.Create("Cluster", "prod", nil, m{"controlPlaneEndpoint": m{"host": "192.0.2.1", "port": 6443}}, nil)
		w.set()
		w.machine("one", "node-1", "lab://1")
		w.machine("ten", "node-10", "lab://10")
		if more != nil {
			more(w)
		}
		return w
	})
}

func template(more m) m {
	spec := m{
		"clusterName": "prod", "bootstrap": m{"dataSecretName": "none"}, "version": "v1.37.2",
		"infrastructureRef": m{"apiGroup": "infrastructure." + group, "kind": "LabMachine", "name": "x"},
	}
	maps.Copy(spec, more)
	return spec
}

func (w *world) set() {
	labels := m{"pool": "a"}
	w.Create("MachineSet", "pool", nil, m{
		"clusterName": "prod", "replicas": 2, "selector": m{"matchLabels": labels},
		"template": m{"metadata": m{"labels": labels}, "spec": template(nil)},
	}, m{"replicas": 2})
}

func condition(kind, status, reason, message string) m {
	return m{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

// machine makes a Machine of the MachineSet that is up, with a finalizer like Cluster API's.
func (w *world) machine(name, node, providerID string) *unstructured.Unstructured {
	set := w.Get("MachineSet", "pool")
	return w.Create("Machine", name,
		m{
			"labels": m{"pool": "a", group + "/cluster-name": "prod"}, "finalizers": []any{"drydock.dev/machine"},
			"ownerReferences": []any{m{"apiVersion": apiVersion, "kind": "MachineSet", "name": "pool", "uid": set.GetUID(), "controller": true}},
		},
		template(m{"providerID": providerID}),
		m{
			"nodeRef": m{"name": node}, "initialization": m{"infrastructureProvisioned": true},
			"conditions": []any{condition(nodeHealthy, "True", "NodeHealthy", "")},
		})
}

func (w *world) check(name string, more m) {
	spec := m{"clusterName": "prod", "selector": m{"matchLabels": m{"pool": "a"}}, "checks": m{"nodeStartupTimeoutSeconds": 600}}
	maps.Copy(spec, more)
	w.Create("MachineHealthCheck", name, nil, spec, nil)
}

// later waits until a new object is younger than all others, by the whole seconds of the API
// server's clock.
func (w *world) later() {
	newest := time.Time{}
	for _, one := range w.List("Machine", "") {
		if made := one.GetCreationTimestamp().Time; made.After(newest) {
			newest = made
		}
	}
	require.Eventually(w.T, func() bool { return time.Now().Unix() > newest.Unix() }, 5*time.Minute, 5*time.Millisecond)
}

// deletes says how to treat a Machine that no MachineHealthCheck selects.
func deletes(yes bool) string {
	if yes {
		return "delete"
	}
	return "mark"
}

// replacer uses the API server directly.
func (w *world) replacer(change func(*Options)) Replacer {
	o := Options{ClusterAPI: settings.ClusterAPI{Cluster: types.NamespacedName{Namespace: w.Name, Name: "prod"}, Timeout: 2 * time.Minute}, API: lab.Shared(w.T).AdminConfig()}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(w.T, err)
	return Replacer{c}
}

var (
	node1  = engine.Machine{Node: "node-1", UID: "n-1", ProviderID: "lab://1", Attempt: "abcdef-2-1"}
	node10 = engine.Machine{Node: "node-10", UID: "n-10", ProviderID: "lab://10", Attempt: "fedcba-2-1"}
)

// asked returns the UIDs of the Machines whose replacement was requested in any form.
func (w *world) asked() (uids []string) {
	for _, one := range w.List("Machine", "") {
		_, annotated := one.GetAnnotations()[remediateKey]
		conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
		for _, c := range conditions {
			annotated = annotated || c.(m)["type"] == ownerRemedied
		}
		if annotated || one.GetDeletionTimestamp() != nil {
			uids = append(uids, string(one.GetUID()))
		}
	}
	return uids
}

// going begins to delete an object that a finalizer holds.
func (w *world) going(kind, name string) {
	w.Patch(kind, name, m{"metadata": m{"finalizers": []any{"drydock.dev/test"}}})
	require.NoError(w.T, w.Of(kind).Delete(w.T.Context(), name, metav1.DeleteOptions{}))
}

func (w *world) clusterSays(of m) {
	w.Patch("Cluster", "prod", m{"status": m{"conditions": []any{of}}}, "status")
}

func (w *world) owner(kind, name, version, ownerKind, owner, uid string) {
	w.Patch(kind, name, m{"metadata": m{"ownerReferences": []any{m{"apiVersion": version, "kind": ownerKind, "name": owner, "uid": uid, "controller": true}}}})
}

// deployment makes a MachineDeployment, of another or the same revision, the owner of the
// MachineSet, which has revision 1.
func (w *world) deployment(revision string, paused bool) {
	labels := m{"pool": "a"}
	made := w.Create("MachineDeployment", "deployment", m{"annotations": m{revisionKey: revision}}, m{
		"clusterName": "prod", "replicas": 2, "paused": paused, "selector": m{"matchLabels": labels},
		"template": m{"metadata": m{"labels": labels}, "spec": template(nil)},
	}, nil)
	annotation("MachineSet", "pool", revisionKey, "1")(w)
	w.owner("MachineSet", "pool", apiVersion, "MachineDeployment", "deployment", string(made.GetUID()))
}

// named puts the world's namespace into a sentence.
func (w *world) named(says string) string { return strings.ReplaceAll(says, "NS/", w.Name+"/") }
