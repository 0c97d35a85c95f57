// Package owners is for tests of providers whose machines another system replaces, for example
// Cluster API. Such a test runs the real Drydock beside that system's own controllers in the lab.
// It breaks a Node, and asserts the state of the machine's object, the Nodes and the records.
package owners

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// Proven bounds the time of a replacement until its proof. It takes about twenty seconds on a
// machine without other load.
const Proven = 10 * time.Minute

type m = map[string]any

// Env is the environment of one test: the shared lab, machines of its own, and a Drydock with the
// test's own configuration.
type Env struct {
	T         *testing.T
	Lab       *lab.Lab
	Token     string
	Providers m
	// Replacing are the fields of a step that replaces a machine. Nil means the step replace.
	Replacing m
	// Nodes are the Nodes of the test's machines. Mine reports whether a Node belongs to one of
	// these machines or to a successor.
	Nodes    []string
	Mine     func(*corev1.Node) bool
	Object   func(node string) string
	Requests func(*http.Request) bool
	// Asked returns what Seen must return for an object that was replaced for this attempt.
	Asked func(attempt string) []string
	// Seen returns all requests for each object, by the object's UID.
	Seen func() map[string][]string
}

// Options returns the options of a lab with few machines, whose alerts fire at once.
func Options() lab.Options {
	ruleFor := time.Second
	return lab.Options{Nodes: 12, NodeGrace: lab.LongNodeGrace, RuleFor: &ruleFor, RuleFiles: []string{"../../rules/NodeNotReady.yaml"}}
}

// Step returns a step replace for a plan.
func Step(wait time.Duration) m {
	return m{"step": "replace", "wait": fmt.Sprint(wait), "attempts": 1}
}

func (e *Env) step(wait time.Duration) m {
	step := Step(wait)
	maps.Copy(step, e.Replacing)
	return step
}

// Run starts Drydock with the rights that the chart gives it.
func (e *Env) Run(o lab.DrydockOptions, plan ...any) *lab.Drydock {
	e.T.Helper()
	providers := maps.Clone(e.Providers)
	further, _ := o.Config["providers"].(m)
	maps.Copy(providers, further)
	config := m{
		"policies": []any{m{
			"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "2s", "cooldown": "0s",
			"relapseWindow": "0s", "witness": []any{m{"ready": false}}, "plan": plan,
		}},
	}
	maps.Copy(config, o.Config)
	config["providers"] = providers
	o.Config = config
	d, err := e.Lab.StartDrydock(e.T.Context(), e.Token, o)
	require.NoError(e.T, err)
	e.T.Cleanup(d.Kill)
	require.NoError(e.T, e.Lab.SetWebhook(e.T.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: e.Token}))
	return d
}

// Behind starts Drydock with a proxy between it and the API server.
func (e *Env) Behind(plan ...any) (*lab.Drydock, *lab.Proxy) {
	e.T.Helper()
	proxy, err := e.Lab.NewProxy()
	require.NoError(e.T, err)
	e.T.Cleanup(proxy.Close)
	return e.Run(lab.DrydockOptions{Server: proxy.URL()}, plan...), proxy
}

// Counting counts the requests for a replacement that pass the proxy, whatever their results are.
func (e *Env) Counting(proxy *lab.Proxy) (requests func() int) {
	var n atomic.Int64
	proxy.Before(func(r *http.Request) lab.Verdict {
		if e.Requests(r) {
			n.Add(1)
		}
		return lab.Pass
	})
	return func() int { return int(n.Load()) }
}

// Fail makes the node report that it is not Ready, until it gets a new machine.
func (e *Env) Fail(node string) {
	e.T.Helper()
	require.NoError(e.T, e.Lab.SetCondition(e.T.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	e.T.Cleanup(func() { _ = e.Lab.Heal(context.WithoutCancel(e.T.Context()), node, "") })
}

// Eventually waits until the condition is true.
func (e *Env) Eventually(wanted func() bool, what string, args ...any) {
	e.T.Helper()
	require.Eventually(e.T, wanted, lab.Patience, 100*time.Millisecond, append([]any{what}, args...)...)
}

// Node returns the Node with that name.
func (e *Env) Node(name string) *corev1.Node {
	e.T.Helper()
	n, err := e.Lab.Client().CoreV1().Nodes().Get(e.T.Context(), name, metav1.GetOptions{})
	require.NoError(e.T, err)
	return n
}

func (e *Env) gone(node string) bool {
	_, err := e.Lab.Client().CoreV1().Nodes().Get(e.T.Context(), node, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// Well reports whether the Node is Ready.
func Well(n *corev1.Node) bool {
	ready := remediations.ReadyCondition(n)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// Ended returns how the repair of a node ended, and the Node whose history contains that.
func (e *Env) Ended() (entry remediations.Entry, on *corev1.Node) {
	e.T.Helper()
	e.Eventually(func() bool {
		all, err := e.Lab.Client().CoreV1().Nodes().List(e.T.Context(), metav1.ListOptions{})
		require.NoError(e.T, err)
		for i := range all.Items {
			n := &all.Items[i]
			history := remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])
			if e.Mine(n) && len(history) > 0 {
				entry, on = history[0], n
				return true
			}
		}
		return false
	}, "the repair ends")
	return entry, on
}

// Held waits until the node's repair is held with a message that names accepts.
func (e *Env) Held(node string, names func(message string) bool) {
	e.T.Helper()
	last := ""
	e.Eventually(func() bool {
		r := remediations.ReadJournal(e.Node(node)).Record
		if r == nil || r.Hold == nil {
			return false
		}
		last = r.Hold.Message
		return names(last)
	}, "the repair is held")
	e.T.Logf("held: %s", last)
}

// Watch returns a function that returns what note has found so far in any version of each object,
// by the object's UID.
func Watch(t *testing.T, client dynamic.Interface, kind schema.GroupVersionResource, namespace, selector string, note func(*unstructured.Unstructured) []string) func() map[string][]string {
	t.Helper()
	var mu sync.Mutex
	seen := map[string][]string{}
	add := func(o any) {
		one, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, what := range note(one) {
			if have := seen[string(one.GetUID())]; !slices.Contains(have, what) {
				seen[string(one.GetUID())] = append(have, what)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, func(o *metav1.ListOptions) { o.LabelSelector = selector })
	informer := factory.ForResource(kind).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add,
	})
	require.NoError(t, err)
	factory.Start(ctx.Done())
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return func() map[string][]string {
		mu.Lock()
		defer mu.Unlock()
		out := map[string][]string{}
		for uid, what := range seen {
			out[uid] = slices.Clone(what)
		}
		return out
	}
}
