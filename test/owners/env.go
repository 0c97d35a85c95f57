// Package owners is what the tests share of providers whose machines another system replaces by
// itself: the real program beside that system's own controllers in the lab, a fault on a Node, its
// alert, and what becomes of the machine's object. Tests assert the state of the world: that
// object, the Nodes, the records.
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

// Proven is how long the proof of a replacement may take: some twenty seconds on a machine that has
// nothing else to do.
const Proven = 10 * time.Minute

// m is a part of a configuration.
type m = map[string]any

// Env is what one test has: the shared lab, machines of its own, and a Drydock with the test's own
// configuration.
type Env struct {
	T   *testing.T
	Lab *lab.Lab
	// Token is the file with the receiver's token, from PrepareDrydockWith.
	Token string
	// Providers is that section of Drydock's configuration.
	Providers m
	// Replacing is what a step has that replaces a machine; nil: it is the step replace.
	Replacing m
	// Nodes are those of the test's machines, Mine says whether a Node is of one of them, or came
	// for it.
	Nodes []string
	Mine  func(*corev1.Node) bool
	// Object is the UID of the machine's object of the Node.
	Object func(node string) string
	// Requests says that it asks for the replacement of a machine.
	Requests func(*http.Request) bool
	// Asked is what Seen has of an object whose replacement an attempt asked for, and that was
	// replaced.
	Asked func(attempt string) []string
	// Seen is what was ever asked of each object, by UID.
	Seen func() map[string][]string
}

// Options start a lab with few machines of its own, whose alerts fire at once.
func Options() lab.Options {
	ruleFor := time.Second
	return lab.Options{Nodes: 12, NodeGrace: lab.LongNodeGrace, RuleFor: &ruleFor, RuleFiles: []string{"../../rules/NodeNotReady.yaml"}}
}

// Step is a replacement in a plan.
func Step(wait time.Duration) m {
	return m{"step": "replace", "wait": fmt.Sprint(wait), "attempts": 1}
}

// step is a replacement in the test's plan.
func (e *Env) step(wait time.Duration) m {
	step := Step(wait)
	maps.Copy(step, e.Replacing)
	return step
}

// Run starts Drydock under the rights that the chart gives it, with what the options' configuration
// has besides.
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

// Behind starts Drydock with a proxy before the API server.
func (e *Env) Behind(plan ...any) (*lab.Drydock, *lab.Proxy) {
	e.T.Helper()
	proxy, err := e.Lab.NewProxy()
	require.NoError(e.T, err)
	e.T.Cleanup(proxy.Close)
	return e.Run(lab.DrydockOptions{Server: proxy.URL()}, plan...), proxy
}

// Counting counts the requests for a replacement that pass the proxy, whatever becomes of them.
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

// Fail makes the node say that it is not Ready, until its machine is another one.
func (e *Env) Fail(node string) {
	e.T.Helper()
	require.NoError(e.T, e.Lab.SetCondition(e.T.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	e.T.Cleanup(func() { _ = e.Lab.Heal(context.WithoutCancel(e.T.Context()), node, "") })
}

// Eventually waits until it is so.
func (e *Env) Eventually(wanted func() bool, what string, args ...any) {
	e.T.Helper()
	require.Eventually(e.T, wanted, lab.Patience, 100*time.Millisecond, append([]any{what}, args...)...)
}

// Node reads it.
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

// Well says that the Node is Ready.
func Well(n *corev1.Node) bool {
	ready := remediations.ReadyCondition(n)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// Ended is how the repair of a node ended, and the Node whose history has it.
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

// Held waits until the node's repair is held for a reason that names all of that.
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

// Watch returns what note finds in any version of each object, by UID.
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
