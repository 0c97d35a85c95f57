package external

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

func TestMain(m *testing.M) { lab.Main(m, lab.Options{Components: lab.APIServerOnly}) }

// m is an object, or a part of one.
type m = map[string]any

var (
	kinds  sync.Once
	worlds atomic.Int64
)

// world is a namespace with a template, and two Nodes.
type world struct {
	t        testing.TB
	client   dynamic.Interface
	ns       string
	one, two engine.Machine
}

func api(t testing.TB) dynamic.Interface {
	t.Helper()
	l := lab.Shared(t)
	kinds.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, l.AddRemediatorKinds(ctx))
		require.NoError(t, l.AddClusterAPIKinds(ctx))
	})
	config := l.AdminConfig()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return <-build(t, 1)
}

// build makes worlds side by side.
func build(t testing.TB, many int) chan *world {
	t.Helper()
	client, made := api(t), make(chan *world, many)
	var g errgroup.Group
	g.SetLimit(8)
	for range many {
		g.Go(func() error {
			w := &world{t: t, client: client, ns: fmt.Sprintf("remediators-%d", worlds.Add(1))}
			_, err := lab.Shared(t).Client().CoreV1().Namespaces().Create(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			w.template("SelfNodeRemediationTemplate", m{"template": m{"spec": m{"remediationStrategy": "Automatic"}}})
			w.one, w.two = w.node(w.ns+"-a"), w.node(w.ns+"-b")
			w.one.Attempt, w.two.Attempt = "abcdef-0-1", "fedcba-0-1"
			made <- w
			return nil
		})
	}
	require.NoError(t, g.Wait())
	return made
}

var versions = map[string]schema.GroupVersion{
	"SelfNodeRemediation":         {Group: "self-node-remediation.medik8s.io", Version: "v1alpha1"},
	"SelfNodeRemediationTemplate": {Group: "self-node-remediation.medik8s.io", Version: "v1alpha1"},
	"Metal3Remediation":           {Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"},
	"Metal3RemediationTemplate":   {Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"},
	"Machine":                     {Group: "cluster.x-k8s.io", Version: "v1beta2"},
}

func (w *world) of(kind string) dynamic.ResourceInterface {
	return w.client.Resource(versions[kind].WithResource(plural(kind))).Namespace(w.ns)
}

func (w *world) create(kind, name string, meta, spec m) *unstructured.Unstructured {
	metadata := m{"name": name, "namespace": w.ns}
	for k, v := range meta {
		metadata[k] = v
	}
	data, err := json.Marshal(m{"apiVersion": versions[kind].String(), "kind": kind, "metadata": metadata, "spec": spec})
	require.NoError(w.t, err)
	o := &unstructured.Unstructured{}
	require.NoError(w.t, o.UnmarshalJSON(data))
	made, err := w.of(kind).Create(context.WithoutCancel(w.t.Context()), o, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return made
}

func (w *world) patch(kind, name string, change m, of ...string) {
	data, err := json.Marshal(change)
	require.NoError(w.t, err)
	_, err = w.of(kind).Patch(context.WithoutCancel(w.t.Context()), name, types.MergePatchType, data, metav1.PatchOptions{}, of...)
	require.NoError(w.t, err)
}

// get is the object; nil: there is none.
func (w *world) get(kind, name string) *unstructured.Unstructured {
	o, err := w.of(kind).Get(context.WithoutCancel(w.t.Context()), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return o
}

func (w *world) template(kind string, spec m) { w.create(kind, "own", nil, spec) }

// of1 is the template of that kind as a plan names it.
func (w *world) named(kind string) remediations.Template {
	return remediations.Template{APIVersion: versions[kind].String(), Kind: kind, Namespace: w.ns, Name: "own"}
}

// node makes a Node of that name, whose agent could reboot it.
func (w *world) node(name string) engine.Machine {
	n, err := lab.Shared(w.t).Client().CoreV1().Nodes().Create(context.WithoutCancel(w.t.Context()), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{rebootableKey: "true"},
	}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return engine.Machine{Node: name, UID: string(n.UID), Template: w.named("SelfNodeRemediationTemplate")}
}

func (w *world) dropNode(name string) {
	require.NoError(w.t, lab.Shared(w.t).Client().CoreV1().Nodes().Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{}))
}

func (w *world) patchNode(name string, change m) {
	data, err := json.Marshal(change)
	require.NoError(w.t, err)
	_, err = lab.Shared(w.t).Client().CoreV1().Nodes().Patch(context.WithoutCancel(w.t.Context()), name, types.MergePatchType, data, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// asked are the Nodes that have an object of Drydock's.
func (w *world) asked() (nodes []string) {
	all, err := w.of("SelfNodeRemediation").List(context.WithoutCancel(w.t.Context()), metav1.ListOptions{LabelSelector: madeLabel + "=" + madeBy})
	require.NoError(w.t, err)
	for i := range all.Items {
		nodes = append(nodes, all.Items[i].GetAnnotations()[nodeKey])
	}
	return nodes
}

func (w *world) remediator(change func(*Options)) Remediator {
	o := Options{API: lab.Shared(w.t).AdminConfig(), Timeout: 20 * time.Second, Now: time.Now}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(w.t, err)
	return Remediator{c}
}

func yes() error { return nil }
