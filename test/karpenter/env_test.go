// Package karpenter tests the real Drydock beside Karpenter itself in the lab.
package karpenter

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/test/owners"
)

// m is a part of a configuration file.
type m = map[string]any

func TestMain(t *testing.M) { lab.Main(t, owners.Options()) }

var (
	once      sync.Once
	karpenter *lab.Karpenter
	token     string
)

// newEnv creates a NodePool with a fixed number of Nodes. With zero, it has the Nodes that its pods
// need.
func newEnv(t *testing.T, pool string, nodes int) *owners.Env {
	t.Helper()
	l := lab.Shared(t)
	providers := m{"karpenter": m{
		"nodeSelector": m{"matchExpressions": []any{m{"key": lab.NodePoolLabel, "operator": "Exists"}}}, "timeout": "1m",
	}}
	once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		var err error
		karpenter, err = l.StartKarpenter(ctx)
		require.NoError(t, err)
		token, err = l.PrepareDrydockWith(ctx, m{
			"admission": m{"webhook": m{"enabled": false}}, // the policy alone
			"config":    m{"mode": "enforce", "providers": providers},
		})
		require.NoError(t, err)
	})
	require.NotEmpty(t, token, "Karpenter did not start")
	e := &owners.Env{
		T: t, Lab: l, Token: token, Providers: providers,
		Mine: func(n *corev1.Node) bool { return n.Labels[lab.NodePoolLabel] == pool },
		Requests: func(r *http.Request) bool {
			return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/nodeclaims/")
		},
		Asked: func(string) []string { return []string{"deleted"} },
		Seen:  owners.Watch(t, karpenter.Dynamic, lab.NodeClaims, "", lab.NodePoolLabel+"="+pool, asked),
	}
	e.Object = func(node string) string { return string(e.Node(node).OwnerReferences[0].UID) }
	var err error
	e.Nodes, err = karpenter.AddNodePool(t.Context(), pool, nodes)
	require.NoError(t, err)
	return e
}

// newBusyEnv creates a NodePool that makes Nodes when pods need them, an app with the NodePool's
// name, and one Node for the app's pod.
func newBusyEnv(t *testing.T, pool string) *owners.Env {
	t.Helper()
	return newBusyEnvWith(t, pool, nil)
}

// newBusyEnvWith does the same. The app's further pods go to the node room. If room is empty, no
// node has room for them.
func newBusyEnvWith(t *testing.T, pool string, room *atomic.Value) *owners.Env {
	t.Helper()
	e := newEnv(t, pool, 0)
	schedule(e, pool, room)
	e.App(pool, func(pod *corev1.PodTemplateSpec) { pod.Spec.NodeSelector = map[string]string{lab.NodePoolLabel: pool} })
	var err error
	e.Nodes, err = karpenter.AwaitNodes(t.Context(), pool, 1)
	require.NoError(t, err)
	e.Bind(pool, e.Nodes[0])
	return e
}

// asked returns what the NodeClaim shows about requests: whether it was deleted, and whether its
// end was forced.
func asked(one *unstructured.Unstructured) (all []string) {
	if one.GetDeletionTimestamp() != nil {
		all = append(all, "deleted")
	}
	if _, there := one.GetAnnotations()["karpenter.sh/nodeclaim-termination-timestamp"]; there {
		all = append(all, "forced")
	}
	return all
}

// schedule acts as a scheduler for each pod of the app that has no node. It binds the pod to the
// node that has room, or reports that the pod fits on no node.
func schedule(e *owners.Env, app string, room *atomic.Value) {
	e.T.Helper()
	pods := e.Lab.Client().CoreV1().Pods("default")
	one := func(ctx context.Context, pod *corev1.Pod) error {
		if room != nil && room.Load() != nil {
			return pods.Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: room.Load().(string)},
			}, metav1.CreateOptions{})
		}
		_, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`), metav1.PatchOptions{}, "status")
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.T.Context()))
	ended := make(chan struct{})
	e.T.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			waiting, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + app, FieldSelector: "spec.nodeName="})
			for i := range waiting.Items {
				err = errors.Join(err, one(ctx, &waiting.Items[i]))
			}
			if err != nil && ctx.Err() == nil {
				e.T.Logf("the scheduler of %s, which tries again: %v", app, err)
			}
		}, 200*time.Millisecond)
	}()
}

// claims returns the NodePool's NodeClaims.
func claims(t *testing.T, pool string) []unstructured.Unstructured {
	t.Helper()
	all, err := karpenter.Dynamic.Resource(lab.NodeClaims).List(t.Context(), metav1.ListOptions{LabelSelector: lab.NodePoolLabel + "=" + pool})
	require.NoError(t, err)
	return all.Items
}

// kept returns Drydock's ledger.
func kept(e *owners.Env) *ledger.Ledger {
	e.T.Helper()
	l, err := ledgerOf(e)
	require.NoError(e.T, err)
	return l
}

// ledgerOf returns the ledger, which may not exist yet.
func ledgerOf(e *owners.Env) (*ledger.Ledger, error) {
	data, err := e.Lab.Client().CoreV1().ConfigMaps(lab.Namespace).Get(e.T.Context(), "drydock-ledger", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return ledger.Decode(data.Data)
}

// eventNote returns the note of the Event with that reason about the repair of the Node, if the
// Event's object is Drydock itself. It is empty if there is no such Event.
func eventNote(e *owners.Env, reason, node string) string {
	e.T.Helper()
	all, err := e.Lab.Client().EventsV1().Events(lab.Namespace).List(e.T.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	require.NoError(e.T, err)
	for _, event := range all.Items {
		if event.Regarding.Kind == "ConfigMap" && strings.Contains(event.Note, "of Node "+node+" ") {
			return event.Note
		}
	}
	return ""
}
