// Package sidecars tests the real Drydock in the lab with simulated sidecars. A pod is deleted, and
// the StatefulSet's controller replaces it. The blackbox exporter gets the answer 503, Prometheus
// and Alertmanager raise the alert, and Drydock marks the sidecar ready, or leaves it alone. Tests
// assert the state of the world: the calls to the sidecars and what the sidecars did, the Node, the
// Events.
package sidecars

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/sidecarsim"
	"drydock.dev/drydock/remediations"
)

func TestMain(m *testing.M) {
	second := time.Second
	lab.Main(m, lab.Options{
		Nodes: 4, Sidecars: true, RuleFor: &second, RuleFiles: []string{"../../rules/SidecarNotReady.yaml"},
	})
}

// account is the ServiceAccount whose token Drydock sends to the sidecars' proxies. The chart
// creates it.
const account = "system:serviceaccount:drydock:drydock-sidecars"

// providers returns the configuration of the provider of sidecars. Further keys are merged over it.
func providers(over map[string]any) map[string]any {
	sei := map[string]any{"name": "sei", "auth": map[string]any{"serviceAccount": map[string]any{"name": "drydock-sidecars"}}}
	maps.Copy(sei, over)
	return map[string]any{"sidecars": []any{sei}}
}

// quick is the shipped policy with short times.
func quick(over map[string]any) []any {
	p := map[string]any{
		"name": "sidecar-not-ready", "match": []string{`remediation="sidecar-not-ready"`},
		"target":   map[string]any{"pod": "pod", "namespace": "namespace"},
		"plan":     []any{map[string]any{"step": "mark-ready", "provider": "sei", "wait": "30s", "attempts": 3}},
		"proofFor": "0s", "cooldown": "0s", "repairCordoned": true, "onExhausted": "none",
	}
	maps.Copy(p, over)
	return []any{p}
}

// once are the things that the tests of the package share.
var once struct {
	token    string
	sidecars *lab.Sidecars
	tests    int
}

// yard is what one test has: the shared lab, a namespace of its own for SeiNodes, and Drydock with
// the test's configuration.
type yard struct {
	t        *testing.T
	lab      *lab.Lab
	sidecars *lab.Sidecars
	ns       string
	began    time.Time
}

func newYard(t *testing.T) *yard {
	t.Helper()
	l := lab.Shared(t)
	if once.sidecars == nil {
		var err error
		once.token, err = l.PrepareDrydockWith(t.Context(), map[string]any{
			"admission": map[string]any{"policy": map[string]any{"enabled": false}},
			"config":    map[string]any{"providers": providers(nil)},
		})
		require.NoError(t, err)
		once.sidecars, err = l.StartSidecars(context.WithoutCancel(t.Context()))
		require.NoError(t, err)
	}
	once.tests++
	y := &yard{t: t, lab: l, sidecars: once.sidecars, ns: fmt.Sprintf("sei-%d", once.tests), began: time.Now()}
	y.settle()
	t.Cleanup(y.clear)
	return y
}

// clear removes the test's SeiNodes, and with their pods the alerts about them. It ends their
// faults only afterwards: a sidecar without a fault would answer 503, and the next test's Drydock
// would mark it ready.
func (y *yard) clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(y.t.Context()), lab.Patience)
	defer cancel()
	y.sidecars.On(sidecarsim.Submit, nil)
	err := y.lab.Client().CoreV1().Namespaces().Delete(ctx, y.ns, metav1.DeleteOptions{})
	require.NoError(y.t, client.IgnoreNotFound(err))
	err = y.sidecars.Await(ctx, func() bool {
		return !slices.ContainsFunc(y.sidecars.Pods(), func(p sidecarsim.Pod) bool { return p.Namespace == y.ns })
	})
	require.NoError(y.t, err)
	y.sidecars.HealAll()
}

// settle waits until no alert of earlier tests fires, and removes what they left on the nodes and
// in the ledger.
func (y *yard) settle() {
	y.t.Helper()
	require.Eventually(y.t, func() bool { return len(y.alerts("")) == 0 }, lab.Patience, 100*time.Millisecond, "the alerts of earlier tests do not end")
	nodes, err := y.lab.Client().CoreV1().Nodes().List(y.t.Context(), metav1.ListOptions{})
	require.NoError(y.t, err)
	for _, n := range nodes.Items {
		gone := map[string]any{}
		for k := range n.Annotations {
			if remediations.Relevant(k) {
				gone[k] = nil
			}
		}
		y.patchNode(n.Name, map[string]any{"metadata": map[string]any{"annotations": gone}, "spec": map[string]any{"unschedulable": nil}})
	}
	err = y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Delete(y.t.Context(), "drydock-ledger", metav1.DeleteOptions{})
	require.NoError(y.t, client.IgnoreNotFound(err))
}

func (y *yard) patchNode(name string, patch map[string]any) {
	y.t.Helper()
	data, err := json.Marshal(patch)
	require.NoError(y.t, err)
	_, err = y.lab.Client().CoreV1().Nodes().Patch(y.t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{})
	require.NoError(y.t, err)
}

// run starts Drydock and sends Alertmanager's posts to it. Drydock ends with the test.
func (y *yard) run(o lab.DrydockOptions) *lab.Drydock {
	y.t.Helper()
	if o.Config == nil {
		o.Config = map[string]any{}
	}
	if o.Config["providers"] == nil {
		o.Config["providers"] = providers(nil)
	}
	d, err := y.lab.StartDrydock(y.t.Context(), once.token, o)
	require.NoError(y.t, err)
	y.t.Cleanup(d.Kill)
	require.NoError(y.t, y.lab.SetWebhook(y.t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: once.token}))
	return d
}

// add creates SeiNodes with these names on the node.
func (y *yard) add(node string, names ...string) []lab.SeiNodeSpec {
	y.t.Helper()
	var specs []lab.SeiNodeSpec
	for _, name := range names {
		specs = append(specs, lab.SeiNodeSpec{Namespace: y.ns, Name: name, Node: node})
	}
	require.NoError(y.t, y.sidecars.AddSeiNodes(y.t.Context(), specs...))
	return specs
}

func (y *yard) replace(specs ...lab.SeiNodeSpec) {
	y.t.Helper()
	for _, spec := range specs {
		_, err := y.sidecars.ReplacePod(y.t.Context(), spec)
		require.NoError(y.t, err)
	}
}

// status changes a SeiNode's status.
func (y *yard) status(spec lab.SeiNodeSpec, status map[string]any) {
	y.t.Helper()
	require.NoError(y.t, y.sidecars.PatchSeiNodeStatus(y.t.Context(), y.ns, spec.Name, status))
}

// opens waits until the gates of all these pods are open.
func (y *yard) opens(specs ...lab.SeiNodeSpec) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	err := y.sidecars.Await(ctx, func() bool {
		return !slices.ContainsFunc(specs, func(s lab.SeiNodeSpec) bool { return !y.sidecars.Ready(s.Pod()) })
	})
	require.NoErrorf(y.t, err, "closed: %v; Events: %v", y.sidecars.Closed(), y.events(""))
}

// accepts waits until the sidecar has done something on request.
func (y *yard) accepts(spec lab.SeiNodeSpec) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	_, err := y.sidecars.AwaitCall(ctx, func(c sidecarsim.Call) bool { return c.Pod.Key() == spec.Pod() && c.Done != "" })
	require.NoErrorf(y.t, err, "calls: %v; Events: %v", y.posted(spec), y.events(""))
}

// posted returns Drydock's own posts to a sidecar, whatever their results were.
func (y *yard) posted(spec lab.SeiNodeSpec) []sidecarsim.Call {
	return slices.DeleteFunc(y.sidecars.CallsTo(spec.Pod(), sidecarsim.Submit), func(c sidecarsim.Call) bool { return c.User == lab.SeiController })
}

// answered waits until there are n posts of Drydock's own and all have their answers, and returns
// them.
func (y *yard) answered(spec lab.SeiNodeSpec, n int) []sidecarsim.Call {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	err := y.sidecars.Await(ctx, func() bool {
		posts := y.posted(spec)
		return len(posts) >= n && !slices.ContainsFunc(posts, func(c sidecarsim.Call) bool { return c.Status == 0 })
	})
	posts := y.posted(spec)
	require.NoErrorf(y.t, err, "there are %v", posts)
	require.Len(y.t, posts, n)
	return posts
}

// alerts returns the alerts in Alertmanager about a pod. If pod is empty, it returns the alerts
// about any pod.
func (y *yard) alerts(pod string) []map[string]string {
	y.t.Helper()
	filter := "pod%3D~%22.%2B%22"
	if pod != "" {
		filter = "pod%3D%22" + pod + "%22"
	}
	var alerts []struct{ Labels map[string]string }
	y.request(http.MethodGet, y.lab.AlertmanagerURLs()[0]+"/api/v2/alerts?filter="+filter, nil, &alerts)
	var out []map[string]string
	for _, a := range alerts {
		out = append(out, a.Labels)
	}
	return out
}

// fired waits until Prometheus has had the alert about a pod. It may have ended already, because
// Drydock is quick.
func (y *yard) fired(spec lab.SeiNodeSpec) {
	y.t.Helper()
	query := url.Values{"query": {fmt.Sprintf(`last_over_time(ALERTS{alertname="SidecarNotReady",alertstate="firing",namespace=%q,pod=%q}[1h])`, y.ns, spec.Name+"-0")}}
	require.Eventually(y.t, func() bool {
		var answer struct{ Data struct{ Result []any } }
		y.request(http.MethodGet, y.lab.PrometheusURL()+"/api/v1/query?"+query.Encode(), nil, &answer)
		return len(answer.Data.Result) > 0
	}, lab.Patience, 100*time.Millisecond, "%s fires", spec.Pod())
}

// awaitAlert waits for an alert about a pod that stays until the test ends its cause, or for the
// end of that alert.
func (y *yard) awaitAlert(spec lab.SeiNodeSpec, fires bool) {
	y.t.Helper()
	require.Eventually(y.t, func() bool { return len(y.alerts(spec.Name+"-0")) > 0 == fires }, lab.Patience, 100*time.Millisecond, "%s fires: %t", spec.Pod(), fires)
}

// silence creates a silence, and returns a function that ends it.
func (y *yard) silence(pod string) (expire func()) {
	y.t.Helper()
	var made struct{ SilenceID string }
	y.request(http.MethodPost, y.lab.AlertmanagerURLs()[0]+"/api/v2/silences", map[string]any{
		"matchers": []any{map[string]any{"name": "pod", "value": pod, "isRegex": false, "isEqual": true}},
		"startsAt": time.Now(), "endsAt": time.Now().Add(time.Hour), "createdBy": "ann", "comment": "a hold by hand",
	}, &made)
	expire = func() {
		y.request(http.MethodDelete, y.lab.AlertmanagerURLs()[0]+"/api/v2/silence/"+made.SilenceID, nil, nil)
	}
	return expire
}

func (y *yard) request(method, url string, body, into any) {
	y.t.Helper()
	// It does not use the test's context, because cleanups also call it when that context has
	// ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(y.t.Context()), lab.Patience)
	defer cancel()
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		require.NoError(y.t, err)
		sent = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, sent)
	require.NoError(y.t, err)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	require.NoError(y.t, err)
	defer response.Body.Close()
	require.Equal(y.t, http.StatusOK, response.StatusCode, url)
	if into != nil {
		require.NoError(y.t, json.NewDecoder(response.Body).Decode(into))
	}
}

func (y *yard) node(name string) *corev1.Node {
	y.t.Helper()
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
	require.NoError(y.t, err)
	return n
}

// record returns the node's record for the pod's sidecar, or nil if there is none.
func (y *yard) record(node string, spec lab.SeiNodeSpec) *remediations.Record {
	y.t.Helper()
	j := remediations.ReadJournal(y.node(node))
	require.NoError(y.t, j.Malformed)
	return j.Records[remediations.SidecarKey(remediations.Pod{Namespace: y.ns, Name: spec.Name + "-0"})]
}

// ended waits until the node's history has n repairs of the pod's sidecar, and the record is gone
// or Exhausted. It returns the repairs, newest first.
func (y *yard) ended(node string, spec lab.SeiNodeSpec, n int) []remediations.Entry {
	y.t.Helper()
	var found []remediations.Entry
	require.Eventually(y.t, func() bool {
		found = nil
		for _, e := range remediations.DecodeHistory(y.node(node).Annotations[remediations.HistoryKey]) {
			if e.Pod == spec.Pod() {
				found = append(found, e)
			}
		}
		return len(found) >= n
	}, lab.Patience, 100*time.Millisecond, "%d repairs of %s end; Events: %v", n, spec.Pod(), y.events(""))
	require.Len(y.t, found, n)
	return found
}

// events returns the notes of the test's Events about its own objects, as "kind/name reason: note".
// If a name is given, it returns only Events about that object.
func (y *yard) events(name string) []string {
	y.t.Helper()
	all, err := y.lab.Client().EventsV1().Events("").List(y.t.Context(), metav1.ListOptions{})
	require.NoError(y.t, err)
	var out []string
	for _, e := range all.Items {
		if e.Regarding.Namespace != y.ns || e.ReportingController != "drydock" || name != "" && e.Regarding.Name != name {
			continue
		}
		out = append(out, fmt.Sprintf("%s/%s %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Reason, e.Note))
	}
	return out
}

// awaitEvent waits for an Event about the object.
func (y *yard) awaitEvent(object, reason, text string) {
	y.t.Helper()
	kind, name, _ := strings.Cut(object, "/")
	require.Eventually(y.t, func() bool {
		return slices.ContainsFunc(y.events(name), func(e string) bool {
			return strings.HasPrefix(e, kind+"/") && strings.Contains(e, " "+reason+": ") && strings.Contains(e, text)
		})
	}, lab.Patience, 100*time.Millisecond, "%s %s %q; there are %q", object, reason, text, y.events(""))
}
