// Package e2e runs the real Drydock in the lab: a fault on a Node, the alert of Prometheus, the
// post of Alertmanager, and what happens to the machine at the (simulated) provider. Tests assert
// the state of the world: the Node, the ledger, the provider's own record.
package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/medik8s"
)

// patience is how long the proof of a step may take if it must come. It is long enough for a busy
// machine, so only a fault uses it up. A step that must be given up has a wait of its own.
const patience = "10m"

// The fleet is large enough for shares of it to mean something. node-i is in the zone i modulo
// zones.
const (
	fleet = 80
	zones = 4
)

func TestMain(m *testing.M) {
	ruleFor := time.Second
	nodes := lab.CivoNodes(fleet)
	for i := range nodes {
		nodes[i].Zone = fmt.Sprintf("zone-%d", i%zones)
	}
	lab.Main(m, lab.Options{
		NodeSpecs: nodes, RuleFor: &ruleFor, Alertmanagers: 2,
		RuleFiles: []string{"../../rules/NodeNotReady.yaml", "../../rules/NodeKernelDeadlock.yaml", "../../rules/NodeSubsystemNotReady.yaml"}, ScrapeConfigs: scraped(),
	})
}

// yard is what one test has: the shared lab, a provider of its own, and Drydock with the test's
// configuration.
type yard struct {
	t     *testing.T
	lab   *lab.Lab
	civo  *lab.Civo
	token string
	// Events from before began belong to earlier tests.
	began time.Time
}

var token string

func newYard(t *testing.T) *yard {
	t.Helper()
	l := lab.Shared(t)
	var err error
	if token == "" {
		for _, name := range []string{remediators, metal3, medik8s.Namespace} {
			_, err = l.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			require.NoError(t, client.IgnoreAlreadyExists(err))
		}
		// Admission is off, because tests write records and remove what earlier tests left.
		token, err = l.PrepareDrydockWith(t.Context(), map[string]any{
			"admission": map[string]any{"policy": map[string]any{"enabled": false}},
			"config": map[string]any{
				"mode": "enforce", "announce": []any{"medik8s"}, "providers": map[string]any{"external": map[string]any{}, "annotation": byAnnotation()}, "policies": []any{policy(map[string]any{"plan": []any{external(patience), byRemediator("FenceAgentsRemediation", remediators, patience), byRemediator("Metal3Remediation", metal3, patience)}})},
			},
		})
		require.NoError(t, err)
	}
	y := &yard{t: t, lab: l, token: token, began: time.Now()}
	nodes, err := l.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	y.settle(nodes.Items)
	y.civo, err = l.StartCivo(t.Context(), lab.CivoOptions{RebootTime: time.Second})
	require.NoError(t, err)
	t.Cleanup(y.civo.Close)
	return y
}

// settle removes what earlier tests left: firing alerts, records, histories, and the ledger with
// its breakers. Histories matter because the ledger is created again from them, and a machine is
// repaired at most three times a day.
func (y *yard) settle(nodes []corev1.Node) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	left := ""
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, url := range y.lab.AlertmanagerURLs() {
			if left = alertsAt(ctx, url); left != "[]" {
				return false, nil
			}
		}
		return true, nil
	})
	require.NoError(y.t, err, "the alerts of earlier tests do not end: %s", left)
	for _, n := range nodes {
		gone := map[string]any{}
		for k := range n.Annotations {
			if remediations.Relevant(k) {
				gone[k] = nil
			}
		}
		if len(gone) == 0 && n.Labels[remediations.PhaseLabel] == "" {
			continue
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": gone, "labels": map[string]any{remediations.PhaseLabel: nil}},
			"spec":     map[string]any{"unschedulable": nil},
		})
		require.NoError(y.t, err)
		_, err = y.lab.Client().CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(y.t, err)
	}
	err = y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Delete(ctx, "drydock-ledger", metav1.DeleteOptions{})
	require.NoError(y.t, client.IgnoreNotFound(err))
}

// alertsAt returns, as JSON, the alerts about nodes that an Alertmanager has, or why it did not
// answer.
func alertsAt(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v2/alerts?filter=node%3D~%22.%2B%22", nil)
	if err != nil {
		return err.Error()
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	alerts, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(alerts))
}

// policy returns the shipped policy with short times. Further keys are merged over it. A fault does
// not count as a relapse of a fault that an earlier test made on the same node.
func policy(over map[string]any) map[string]any {
	p := map[string]any{
		"name": "node-not-ready", "match": []any{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "2s",
		"cooldown": "0s", "relapseWindow": "0s", "witness": []any{map[string]any{"ready": false}}, "plan": []any{map[string]any{"step": "reboot", "wait": patience, "attempts": 2}},
	}
	for k, v := range over {
		p[k] = v
	}
	return p
}

func config(p map[string]any) map[string]any { return map[string]any{"policies": []any{p}} }

// run starts Drydock and sends Alertmanager's posts to it. Drydock ends with the test.
func (y *yard) run(o lab.DrydockOptions) *lab.Drydock {
	y.t.Helper()
	if o.Civo == nil {
		o.Civo = y.civo
	}
	d, err := y.lab.StartDrydock(y.t.Context(), y.token, o)
	require.NoError(y.t, err)
	y.t.Cleanup(d.Kill)
	require.NoError(y.t, y.lab.SetWebhook(y.t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: y.token}))
	return d
}

// fail makes the node report that it is not Ready, which is a fault at once. A reboot cures it.
func (y *yard) fail(node string) {
	y.t.Helper()
	require.NoError(y.t, y.lab.SetCondition(y.t.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	y.t.Cleanup(func() { _ = y.lab.Heal(context.WithoutCancel(y.t.Context()), node, "") })
}

func (y *yard) node(name string) *corev1.Node {
	y.t.Helper()
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
	require.NoError(y.t, err)
	return n
}

// there waits until the node exists, because it may just be created again.
func (y *yard) there(ctx context.Context, name string) (n *corev1.Node) {
	y.t.Helper()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		n, err = y.lab.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	require.NoError(y.t, err, "waiting for node %s to be there", name)
	return n
}

// await watches a node until it is as wanted.
func (y *yard) await(name, what string, wanted func(*corev1.Node) bool) *corev1.Node {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	n := y.there(ctx, name)
	for !wanted(n) {
		w, err := watchtools.NewRetryWatcherWithContext(ctx, n.ResourceVersion, nodeWatch{y.lab, name})
		require.NoError(y.t, err)
		_, err = watchtools.UntilWithoutRetry(ctx, w, func(e watch.Event) (bool, error) {
			seen, ok := e.Object.(*corev1.Node)
			if ok {
				n = seen
			}
			return ok && wanted(seen), nil
		})
		if errors.Is(err, watchtools.ErrWatchClosed) && ctx.Err() == nil {
			n = y.there(ctx, name) // the watch was too far behind, so begin again
			continue
		}
		require.NoErrorf(y.t, err, "waiting for node %s: %s; it has %v", name, what, drydocks(n))
	}
	return n
}

type nodeWatch struct {
	lab  *lab.Lab
	name string
}

func (w nodeWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = "metadata.name=" + w.name
	return w.lab.Client().CoreV1().Nodes().Watch(ctx, o)
}

func drydocks(n *corev1.Node) []string {
	var out []string
	for k, v := range n.Annotations {
		if remediations.Relevant(k) {
			out = append(out, k+"="+v)
		}
	}
	return out
}

// ended waits for the end of a repair of the node that this test has caused.
func (y *yard) ended(name string) remediations.Entry {
	y.t.Helper()
	return y.entry(name, func(remediations.Entry) bool { return true })
}

// entry waits until the node's history has such an entry of this test.
func (y *yard) entry(name string, wanted func(remediations.Entry) bool) remediations.Entry {
	y.t.Helper()
	var found remediations.Entry
	y.await(name, "a repair to end", func(n *corev1.Node) bool {
		for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
			if wanted(e) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// held waits until the node's repair is held for the reason.
func (y *yard) held(name string, reason remediations.Reason) *remediations.Record {
	y.t.Helper()
	var r *remediations.Record
	y.await(name, "held with "+string(reason), func(n *corev1.Node) bool {
		r = remediations.ReadJournal(n).Record
		return r != nil && r.Hold != nil && r.Hold.Reason == reason
	})
	return r
}

// reboots returns the calls that really had an effect on that node.
func (y *yard) reboots(node string) int {
	id := strings.TrimPrefix(y.node(node).Spec.ProviderID, "civo://")
	count := 0
	for _, c := range y.civo.Done(civosim.HardReboots) {
		if strings.Contains(c.Path, id) {
			count++
		}
	}
	return count
}

// awaitEvent waits for an Event of this test about the node, or about Drydock's ledger, whose note
// contains the text. It uses a watch: the API server does not cache Events, so each list reads all
// of them.
func (y *yard) awaitEvent(node, reason, text string) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	var notes []string
	for ctx.Err() == nil { // a watch that has ended begins again with the present Events
		w, err := y.lab.Client().EventsV1().Events("").Watch(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason + ",regarding.name=" + node})
		if err != nil && ctx.Err() != nil {
			break
		}
		require.NoError(y.t, err)
		for change := range w.ResultChan() {
			e, ok := change.Object.(*eventsv1.Event)
			if !ok || e.EventTime.Time.Before(y.began) {
				continue
			}
			if strings.Contains(e.Note, text) {
				w.Stop()
				return
			}
			notes = append(notes, e.Note)
		}
	}
	y.t.Fatalf("waiting for the Event %s about %s with %q; there were %q", reason, node, text, notes)
}

// noSecret fails the test if the provider's key or the receiver's token is in anything that was
// written.
func (y *yard) noSecret() {
	y.t.Helper()
	var secrets []string
	for _, f := range []string{y.civo.KeyFile, y.token} {
		data, err := os.ReadFile(f)
		require.NoError(y.t, err)
		secrets = append(secrets, strings.TrimSpace(string(data)))
	}
	logs, err := filepath.Glob(filepath.Join(y.lab.LogDir(), "drydock*.log"))
	require.NoError(y.t, err)
	require.NotEmpty(y.t, logs)
	var all strings.Builder
	for _, f := range logs {
		data, err := os.ReadFile(f)
		require.NoError(y.t, err)
		all.Write(data)
	}
	nodes, err := y.lab.Client().CoreV1().Nodes().List(y.t.Context(), metav1.ListOptions{})
	require.NoError(y.t, err)
	events, err := y.lab.Client().EventsV1().Events("").List(y.t.Context(), metav1.ListOptions{})
	require.NoError(y.t, err)
	maps, err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).List(y.t.Context(), metav1.ListOptions{})
	require.NoError(y.t, err)
	fmt.Fprint(&all, nodes, events, maps)
	for _, s := range secrets {
		require.NotContains(y.t, all.String(), s)
	}
}
