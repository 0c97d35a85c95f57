package clusterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/engine"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Options{Components: lab.APIServerOnly}) }

// m is an object, or a part of one.
type m = map[string]any

var plurals = map[string]string{"Cluster": "clusters", "Machine": "machines", "MachineSet": "machinesets", "MachineDeployment": "machinedeployments", "MachineHealthCheck": "machinehealthchecks"}

// world is a Cluster in a namespace of the API server, with a MachineSet of two Machines: those of node-1 and node-10.
type world struct {
	t      testing.TB
	client dynamic.Interface
	ns     string
}

var (
	kinds  sync.Once
	spaces atomic.Int64
)

// api has Cluster API's kinds, and nobody who acts on them.
func api(t testing.TB) dynamic.Interface {
	t.Helper()
	l := lab.Shared(t)
	kinds.Do(func() { require.NoError(t, l.AddClusterAPIKinds(context.WithoutCancel(t.Context()))) })
	config := l.AdminConfig()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return <-build(t, 1, nil)
}

// build makes worlds side by side, each with what more adds.
func build(t testing.TB, many int, more func(*world)) chan *world {
	t.Helper()
	client, made := api(t), make(chan *world, many)
	var g errgroup.Group
	g.SetLimit(8)
	for range many {
		g.Go(func() error {
			w := &world{t: t, client: client, ns: fmt.Sprintf("capi-%d", spaces.Add(1))}
			_, err := lab.Shared(t).Client().CoreV1().Namespaces().Create(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			w.create("Cluster", "prod", nil, m{"controlPlaneEndpoint": m{"host": "192.0.2.1", "port": 6443}}, nil)
			w.set()
			w.machine("one", "node-1", "lab://1")
			w.machine("ten", "node-10", "lab://10")
			if more != nil {
				more(w)
			}
			made <- w
			return nil
		})
	}
	require.NoError(t, g.Wait())
	return made
}

func (w *world) of(kind string) dynamic.ResourceInterface {
	return w.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1beta2", Resource: plurals[kind]}).Namespace(w.ns)
}

// create makes an object with a status.
func (w *world) create(kind, name string, meta, spec, status m) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: m{"apiVersion": apiVersion, "kind": kind, "metadata": m{"name": name, "namespace": w.ns}, "spec": spec}}
	maps.Copy(o.Object["metadata"].(m), meta)
	data, err := o.MarshalJSON() // plain values of all types become JSON's
	require.NoError(w.t, err)
	require.NoError(w.t, o.UnmarshalJSON(data))
	made, err := w.of(kind).Create(context.WithoutCancel(w.t.Context()), o, metav1.CreateOptions{})
	require.NoError(w.t, err)
	if status != nil {
		w.patch(kind, name, m{"status": status}, "status")
	}
	return made
}

func (w *world) patch(kind, name string, change m, of ...string) {
	data, err := json.Marshal(change)
	require.NoError(w.t, err)
	_, err = w.of(kind).Patch(context.WithoutCancel(w.t.Context()), name, types.MergePatchType, data, metav1.PatchOptions{}, of...)
	require.NoError(w.t, err)
}

func (w *world) get(kind, name string) *unstructured.Unstructured {
	o, err := w.of(kind).Get(context.WithoutCancel(w.t.Context()), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return o
}

// delete takes an object away, whatever holds it.
func (w *world) delete(kind, name string) {
	w.patch(kind, name, m{"metadata": m{"finalizers": nil}})
	if w.get(kind, name).GetDeletionTimestamp() == nil {
		require.NoError(w.t, w.of(kind).Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{}))
	}
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
	w.create("MachineSet", "pool", nil, m{
		"clusterName": "prod", "replicas": 2, "selector": m{"matchLabels": labels},
		"template": m{"metadata": m{"labels": labels}, "spec": template(nil)},
	}, m{"replicas": 2})
}

func condition(kind, status, reason, message string) m {
	return m{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

// machine is one of the MachineSet's, up, with a finalizer as Cluster API's.
func (w *world) machine(name, node, providerID string) *unstructured.Unstructured {
	set := w.get("MachineSet", "pool")
	return w.create("Machine", name,
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
	w.create("MachineHealthCheck", name, nil, spec, nil)
}

// later is when a new object is younger than all that there are, by the whole seconds of the API server's clock.
func (w *world) later() {
	newest := time.Time{}
	all, err := w.of("Machine").List(context.WithoutCancel(w.t.Context()), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range all.Items {
		if made := all.Items[i].GetCreationTimestamp().Time; made.After(newest) {
			newest = made
		}
	}
	require.Eventually(w.t, func() bool { return time.Now().Unix() > newest.Unix() }, 30*time.Second, 5*time.Millisecond)
}

// replacer asks the API server itself.
func (w *world) replacer(change func(*Options)) Replacer {
	o := Options{API: lab.Shared(w.t).AdminConfig(), Cluster: types.NamespacedName{Namespace: w.ns, Name: "prod"}, Timeout: 20 * time.Second}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(w.t, err)
	return Replacer{c}
}

var (
	node1  = engine.Machine{Node: "node-1", UID: "n-1", ProviderID: "lab://1", Attempt: "abcdef-2-1"}
	node10 = engine.Machine{Node: "node-10", UID: "n-10", ProviderID: "lab://10", Attempt: "fedcba-2-1"}
)

// asked are the UIDs of the Machines whose replacement was asked for in any way.
func (w *world) asked() (uids []string) {
	all, err := w.of("Machine").List(context.WithoutCancel(w.t.Context()), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range all.Items {
		one := &all.Items[i]
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

// going begins to delete an object that something holds.
func (w *world) going(kind, name string) {
	w.patch(kind, name, m{"metadata": m{"finalizers": []any{"drydock.dev/test"}}})
	require.NoError(w.t, w.of(kind).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

func (w *world) clusterSays(of m) {
	w.patch("Cluster", "prod", m{"status": m{"conditions": []any{of}}}, "status")
}

func (w *world) owner(kind, name, version, ownerKind, owner, uid string) {
	w.patch(kind, name, m{"metadata": m{"ownerReferences": []any{m{"apiVersion": version, "kind": ownerKind, "name": owner, "uid": uid, "controller": true}}}})
}

// deployment makes the MachineSet, of revision 1, that of a MachineDeployment of another or the same revision.
func (w *world) deployment(revision string, paused bool) {
	labels := m{"pool": "a"}
	made := w.create("MachineDeployment", "deployment", m{"annotations": m{revisionKey: revision}}, m{
		"clusterName": "prod", "replicas": 2, "paused": paused, "selector": m{"matchLabels": labels},
		"template": m{"metadata": m{"labels": labels}, "spec": template(nil)},
	}, nil)
	annotation("MachineSet", "pool", revisionKey, "1")(w)
	w.owner("MachineSet", "pool", apiVersion, "MachineDeployment", "deployment", string(made.GetUID()))
}

// named puts the world's namespace into a sentence.
func (w *world) named(says string) string { return strings.ReplaceAll(says, "NS/", w.ns+"/") }
