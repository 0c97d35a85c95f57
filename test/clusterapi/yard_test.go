// Package clusterapi runs the real program beside Cluster API's own controllers in the lab: a fault on a Node, its alert, and what
// becomes of its Machine. Tests assert the state of the world: the Machines, the Nodes, the records.
package clusterapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// within bounds every wait: far beyond what it takes, so that only a fault meets it.
const within = 5 * time.Minute

// proven is how long the proof of a replacement may take: some twenty seconds on a machine that has nothing else to do.
const proven = 3 * time.Minute

// m is a part of a configuration.
type m = map[string]any

func TestMain(t *testing.M) {
	ruleFor := time.Second
	lab.Main(t, lab.Options{Nodes: 12, RuleFor: &ruleFor, RuleFiles: []string{"../../rules/NodeNotReady.yaml"}})
}

// yard is what one test has: the shared lab with Cluster API, a MachineSet of its own, and Drydock as it configures it.
type yard struct {
	t     *testing.T
	lab   *lab.Lab
	capi  *lab.ClusterAPI
	set   string
	nodes []string // of the MachineSet
	seen  func() map[string][]string
}

var (
	once  sync.Once
	capi  *lab.ClusterAPI
	token string
)

// newYard makes a MachineSet of two, with a MachineHealthCheck where checked says so.
func newYard(t *testing.T, set string, checked bool) *yard {
	t.Helper()
	l := lab.Shared(t)
	once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		var err error
		capi, err = l.StartClusterAPI(ctx)
		require.NoError(t, err)
		token, err = l.PrepareDrydockWith(ctx, m{
			"admission": m{"webhook": m{"enabled": false}}, // the policy alone
			"config":    m{"mode": "enforce", "providers": m{"clusterAPI": providers()}},
		})
		require.NoError(t, err)
	})
	require.NotNil(t, capi, "Cluster API did not start")
	y := &yard{t: t, lab: l, capi: capi, set: set}
	y.seen = y.watch(set)
	var err error
	y.nodes, err = capi.AddMachines(t.Context(), set, 2, checked)
	require.NoError(t, err)
	for _, name := range y.nodes {
		y.eventually(func() bool { return well(y.node(name)) }, "Node %s is Ready", name)
	}
	return y
}

func providers() m { return m{"cluster": lab.ClusterAPINamespace + "/" + lab.ClusterAPICluster} }

// run starts Drydock under the rights that the chart gives it, with what the options have beside Cluster API.
func (y *yard) run(o lab.DrydockOptions, plan ...any) *lab.Drydock {
	y.t.Helper()
	y.free()
	with := m{"clusterAPI": providers()}
	further, _ := o.Config["providers"].(m)
	maps.Copy(with, further)
	own := m{
		"leaderElection": m{"leaseDuration": "60s", "renewDeadline": "40s"}, // which a busy machine meets
		"policies": []any{m{
			"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "2s", "cooldown": "0s",
			"relapseWindow": "0s", "witness": []any{m{"ready": false}}, "plan": plan,
		}},
	}
	maps.Copy(own, o.Config)
	own["providers"] = with
	o.Config = own
	d, err := y.lab.StartDrydock(y.t.Context(), token, o)
	require.NoError(y.t, err)
	y.t.Cleanup(d.Kill)
	require.NoError(y.t, y.lab.SetWebhook(y.t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: token}))
	return d
}

// free takes the lead away from a Drydock that is dead.
func (y *yard) free() {
	y.t.Helper()
	err := y.lab.Client().CoordinationV1().Leases(lab.Namespace).Delete(y.t.Context(), "drydock", metav1.DeleteOptions{})
	require.True(y.t, err == nil || apiGone(err), "%v", err)
}

// behind starts Drydock with a proxy before the API server.
func (y *yard) behind(plan ...any) (*lab.Drydock, *lab.Proxy) {
	y.t.Helper()
	proxy, err := y.lab.NewProxy()
	require.NoError(y.t, err)
	y.t.Cleanup(proxy.Close)
	return y.run(lab.DrydockOptions{Server: proxy.URL()}, plan...), proxy
}

// fail makes the node say that it is not Ready, until its machine is another one.
func (y *yard) fail(node string) {
	y.t.Helper()
	require.NoError(y.t, y.lab.SetCondition(y.t.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	y.t.Cleanup(func() { _ = y.lab.Heal(context.WithoutCancel(y.t.Context()), node, "") })
}

func (y *yard) eventually(wanted func() bool, what string, args ...any) {
	y.t.Helper()
	require.Eventually(y.t, wanted, within, 100*time.Millisecond, append([]any{what}, args...)...)
}

func (y *yard) node(name string) *corev1.Node {
	y.t.Helper()
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
	require.NoError(y.t, err)
	return n
}

func well(n *corev1.Node) bool {
	ready := remediations.ReadyCondition(n)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// ended is how the repair of a node ended, and the Node whose history has it.
func (y *yard) ended() (e remediations.Entry, on *corev1.Node) {
	y.t.Helper()
	y.eventually(func() bool {
		all, err := y.lab.Client().CoreV1().Nodes().List(y.t.Context(), metav1.ListOptions{})
		require.NoError(y.t, err)
		for i := range all.Items {
			n := &all.Items[i]
			history := remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])
			if strings.HasPrefix(n.Name, y.set+"-") && len(history) > 0 {
				e, on = history[0], n
				return true
			}
		}
		return false
	}, "the repair ends")
	return e, on
}

// watch returns what was ever asked of each Machine of the set, by UID: the attempts, from any of its versions, and whether it was
// deleted.
func (y *yard) watch(set string) func() map[string][]string {
	var mu sync.Mutex
	asked := map[string][]string{}
	note := func(o any) {
		one, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		var all []string
		if value, there := one.GetAnnotations()["cluster.x-k8s.io/remediate-machine"]; there {
			all = append(all, "annotated by "+value)
		}
		if one.GetDeletionTimestamp() != nil {
			all = append(all, "deleted")
		}
		conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
		for _, c := range conditions {
			if said, _, _ := unstructured.NestedString(c.(m), "message"); c.(m)["type"] == "HealthCheckSucceeded" && strings.HasPrefix(said, "Drydock ") {
				all = append(all, said)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, what := range all {
			if have := asked[string(one.GetUID())]; !slices.Contains(have, what) {
				asked[string(one.GetUID())] = append(have, what)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(y.t.Context()))
	y.t.Cleanup(cancel)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(y.capi.Dynamic, 0, lab.ClusterAPINamespace, func(o *metav1.ListOptions) { o.LabelSelector = "set=" + set })
	informer := factory.ForResource(lab.CAPIMachines).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, o any) { note(o) }, DeleteFunc: note,
	})
	require.NoError(y.t, err)
	factory.Start(ctx.Done())
	require.True(y.t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return func() map[string][]string {
		mu.Lock()
		defer mu.Unlock()
		out := map[string][]string{}
		for uid, what := range asked {
			out[uid] = slices.Clone(what)
		}
		return out
	}
}

// machine is the UID of the node's Machine.
func (y *yard) machine(node string) string {
	y.t.Helper()
	one, err := y.capi.Dynamic.Resource(lab.CAPIMachines).Namespace(lab.ClusterAPINamespace).Get(y.t.Context(), node, metav1.GetOptions{})
	require.NoError(y.t, err)
	return string(one.GetUID())
}

// requireReplaced asserts that the Node, and its machine, are another's now, and that one Machine was asked for, by one attempt.
func (y *yard) requireReplaced(old, fresh *corev1.Node, machine string, asked ...string) {
	y.t.Helper()
	require.NotEqual(y.t, old.UID, fresh.UID)
	require.NotEqual(y.t, old.Spec.ProviderID, fresh.Spec.ProviderID)
	require.NotContains(y.t, y.nodes, fresh.Name)
	require.True(y.t, well(fresh))
	require.False(y.t, fresh.Spec.Unschedulable)
	_, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), old.Name, metav1.GetOptions{})
	require.True(y.t, apiGone(err), "%v", err)
	require.Equal(y.t, []string{machine}, slices.Collect(maps.Keys(y.seen())), "no other Machine was asked for or deleted")
	require.ElementsMatch(y.t, asked, y.seen()[machine])
}

// step is a replacement in a plan.
func step(wait time.Duration) m { return m{"step": "replace", "wait": fmt.Sprint(wait), "attempts": 1} }
