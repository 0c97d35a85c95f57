package karpenter

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/karpenter/settings"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Options{Components: lab.APIServerOnly}) }

// m is an object, or a part of one.
type m = map[string]any

var kinds = map[string]schema.GroupVersionResource{
	"NodeClaim":           {Group: group, Version: "v1", Resource: "nodeclaims"},
	"NodePool":            {Group: group, Version: "v1", Resource: "nodepools"},
	"Node":                {Version: "v1", Resource: "nodes"},
	"Namespace":           {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":      {Version: "v1", Resource: "serviceaccounts"},
	"Pod":                 {Version: "v1", Resource: "pods"},
	"PodDisruptionBudget": {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
}

// world is a NodePool with two NodeClaims, one and ten, and their Nodes. All names end in the
// world's number, because none of these objects has a namespace.
type world struct {
	t      testing.TB
	client dynamic.Interface
	number int64
}

var (
	applied sync.Once
	worlds  atomic.Int64
)

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, nil)
}

// newWorldOf is a world whose NodePool has more in its spec.
func newWorldOf(t testing.TB, spec m) *world {
	t.Helper()
	l := lab.Shared(t)
	applied.Do(func() { require.NoError(t, l.AddKarpenterKinds(context.WithoutCancel(t.Context()))) })
	config := l.AdminConfig()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	w := &world{t: t, client: client, number: worlds.Add(1)}
	class := m{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
	pool := m{"template": m{"spec": m{"nodeClassRef": class, "requirements": []any{}}}}
	maps.Copy(pool, spec)
	w.create("NodePool", "pool", nil, pool)
	w.conditions("NodePool", "pool", condition("Ready", "True", "Ready", ""))
	for _, name := range []string{"one", "ten"} {
		w.claim(name, name, nil)
		w.node(name)
	}
	return w
}

// end removes its objects, because the provider lists those of all worlds.
func (w *world) end() {
	of := metav1.ListOptions{LabelSelector: poolLabel + "=" + w.name("pool")}
	for _, kind := range []string{"NodeClaim", "Node"} {
		all, err := w.of(kind).List(w.ctx(), of)
		require.NoError(w.t, err)
		for _, o := range all.Items {
			_, err := w.of(kind).Patch(w.ctx(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			require.True(w.t, err == nil || apierrors.IsNotFound(err), err)
		}
		require.NoError(w.t, w.of(kind).DeleteCollection(w.ctx(), metav1.DeleteOptions{}, of))
	}
}

func (w *world) name(of string) string { return fmt.Sprintf("%s-%d", of, w.number) }

func (w *world) id(of string) string { return "lab://" + w.name(of) }

// says puts the world's names into a sentence: %one is the name of one.
func (w *world) says(text string) string {
	for _, name := range []string{"pool", "one", "ten", "twin", "busy", "ns"} {
		text = strings.ReplaceAll(text, "%"+name, w.name(name))
	}
	return text
}

func (w *world) of(kind string) dynamic.ResourceInterface {
	if kind == "Pod" || kind == "PodDisruptionBudget" || kind == "ServiceAccount" {
		return w.client.Resource(kinds[kind]).Namespace(w.name("ns"))
	}
	return w.client.Resource(kinds[kind])
}

func (w *world) ctx() context.Context { return context.WithoutCancel(w.t.Context()) }

func (w *world) create(kind, name string, meta, spec m) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: m{"apiVersion": kinds[kind].GroupVersion().String(), "kind": kind, "metadata": m{"name": w.name(name)}}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	maps.Copy(o.Object["metadata"].(m), meta)
	data, err := json.Marshal(o.Object) // plain values of all types become JSON's
	require.NoError(w.t, err)
	require.NoError(w.t, o.UnmarshalJSON(data))
	made, err := w.of(kind).Create(w.ctx(), o, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return made
}

func (w *world) patch(kind, name string, change m, of ...string) {
	data, err := json.Marshal(change)
	require.NoError(w.t, err)
	_, err = w.of(kind).Patch(w.ctx(), w.name(name), types.MergePatchType, data, metav1.PatchOptions{}, of...)
	require.NoError(w.t, err)
}

func (w *world) get(kind, name string) *unstructured.Unstructured {
	o, err := w.of(kind).Get(w.ctx(), w.name(name), metav1.GetOptions{})
	require.NoError(w.t, err)
	return o
}

// delete removes an object, even if a finalizer holds it.
func (w *world) delete(kind, name string) {
	w.patch(kind, name, m{"metadata": m{"finalizers": nil}})
	if _, err := w.of(kind).Get(w.ctx(), w.name(name), metav1.GetOptions{}); err == nil {
		require.NoError(w.t, w.of(kind).Delete(w.ctx(), w.name(name), metav1.DeleteOptions{}))
	}
}

// going begins to delete an object that a finalizer holds.
func (w *world) going(kind, name string) {
	w.patch(kind, name, m{"metadata": m{"finalizers": []any{"drydock.dev/test", finalizer}}})
	require.NoError(w.t, w.of(kind).Delete(w.ctx(), w.name(name), metav1.DeleteOptions{}))
}

func condition(kind, status, reason, message string) m {
	return m{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

func (w *world) conditions(kind, name string, of ...any) {
	w.patch(kind, name, m{"status": m{"conditions": of}}, "status")
}

func owner(kind string, of *unstructured.Unstructured) []any {
	return []any{m{"apiVersion": apiVersion, "kind": kind, "name": of.GetName(), "uid": string(of.GetUID()), "blockOwnerDeletion": true}}
}

// claim makes a NodeClaim of the NodePool that is up, with a finalizer like Karpenter's.
func (w *world) claim(name, node string, spec m) *unstructured.Unstructured {
	all := m{"nodeClassRef": m{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}, "requirements": []any{}}
	maps.Copy(all, spec)
	made := w.create("NodeClaim", name, m{
		"labels": m{poolLabel: w.name("pool")}, "finalizers": []any{finalizer}, "ownerReferences": owner("NodePool", w.get("NodePool", "pool")),
	}, all)
	w.patch("NodeClaim", name, m{"status": m{
		"nodeName": w.name(node), "providerID": w.id(node),
		"conditions": []any{condition(registered, "True", "Registered", ""), condition(initialized, "True", "Initialized", "")},
	}}, "status")
	return made
}

// node makes the Node of the NodeClaim of its name.
func (w *world) node(name string) {
	w.create("Node", name, m{"labels": m{poolLabel: w.name("pool")}, "finalizers": []any{finalizer}, "ownerReferences": owner("NodeClaim", w.get("NodeClaim", name))}, m{"providerID": w.id(name)})
}

// machine is a Node as the engine hands it over.
func (w *world) machine(name string) engine.Machine {
	return engine.Machine{Node: w.name(name), UID: string(w.get("Node", name).GetUID()), ProviderID: w.id(name), Attempt: "abcdef-2-1"}
}

// asked returns the UIDs of the NodeClaims that are being deleted.
func (w *world) asked() (uids []string) {
	all, err := w.of("NodeClaim").List(w.ctx(), metav1.ListOptions{LabelSelector: poolLabel + "=" + w.name("pool")})
	require.NoError(w.t, err)
	for i := range all.Items {
		if all.Items[i].GetDeletionTimestamp() != nil {
			uids = append(uids, string(all.Items[i].GetUID()))
		}
	}
	return uids
}

// later waits until a new object is younger than all others, by the whole seconds of the API
// server's clock.
func (w *world) later() {
	made := w.get("NodeClaim", "ten").GetCreationTimestamp()
	require.Eventually(w.t, func() bool { return time.Now().Unix() > made.Unix() }, 5*time.Minute, 5*time.Millisecond)
}

// gone removes the old NodeClaim and its Node.
func (w *world) gone() {
	w.delete("NodeClaim", "one")
	w.delete("Node", "one")
}

// pod runs on the Node one. Its budget, if any, allows no eviction.
func (w *world) pod(meta, spec m, ready string, limit m) {
	w.create("Namespace", "ns", nil, nil)
	w.create("ServiceAccount", "default", m{"name": "default"}, nil)
	all := m{"nodeName": w.name("one"), "containers": []any{m{"name": "x", "image": "x"}}}
	maps.Copy(all, spec)
	labels := m{"labels": m{"app": "x"}}
	maps.Copy(labels, meta)
	w.create("Pod", "busy", labels, all)
	w.patch("Pod", "busy", m{"status": m{"phase": "Running", "conditions": []any{condition("Ready", ready, "x", "")}}}, "status")
	if limit != nil {
		w.create("PodDisruptionBudget", "busy", nil, m{"maxUnavailable": 0, "selector": m{"matchLabels": m{"app": "x"}}})
		w.patch("PodDisruptionBudget", "busy", m{"status": limit}, "status")
	}
}

// unbound makes a pod that has no node, unless its spec names one, until the test ends: the
// provider sees the pods of all worlds.
func (w *world) unbound(name string, meta, spec m) {
	if _, err := w.of("Namespace").Get(w.ctx(), w.name("ns"), metav1.GetOptions{}); err != nil {
		w.create("Namespace", "ns", nil, nil)
		w.create("ServiceAccount", "default", m{"name": "default"}, nil)
	}
	all := m{"containers": []any{m{"name": "x", "image": "x"}}}
	maps.Copy(all, spec)
	w.create("Pod", name, meta, all)
	w.t.Cleanup(func() {
		_, err := w.of("Pod").Patch(w.ctx(), w.name(name), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.True(w.t, err == nil || apierrors.IsNotFound(err), err)
		err = w.of("Pod").Delete(w.ctx(), w.name(name), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		require.True(w.t, err == nil || apierrors.IsNotFound(err), err)
	})
}

func budgetStatus(allowed, healthy, desired int) m {
	return m{"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": 1, "observedGeneration": 1}
}

// replacer uses the API server directly.
func (w *world) replacer(change func(*Options)) Replacer {
	o := Options{Karpenter: settings.Karpenter{Timeout: 2 * time.Minute}, API: lab.Shared(w.t).AdminConfig(), Now: func() time.Time { return monday }}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(w.t, err)
	return Replacer{c}
}

// monday is ten in the morning.
var monday = time.Date(2026, time.November, 23, 10, 0, 30, 0, time.UTC)
