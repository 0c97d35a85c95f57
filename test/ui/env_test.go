// Package ui opens the page of `kubectl drydock ui` in a real Chromium. The real plugin runs with a
// real API server, with Alertmanager, Drydock and a simulated Civo behind it. Tests assert what the
// page shows, and what is on the Node afterwards.
package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

const (
	pause = 20 * time.Millisecond
	fleet = 24
	zones = 3
)

func TestMain(m *testing.M) {
	ruleFor := time.Second
	nodes := lab.CivoNodes(fleet)
	for i := range nodes {
		nodes[i].Zone, nodes[i].Pool = fmt.Sprintf("zone-%d", i%zones), "workers"
	}
	defer func() {
		if chromium.Browser != nil {
			chromium.Close()
		}
	}()
	lab.Main(m, lab.Options{
		NodeSpecs: nodes, NodeControllers: true, RuleFor: &ruleFor, NodeGrace: lab.LongNodeGrace,
		RuleFiles: []string{"../../rules/NodeNotReady.yaml"},
	})
}

// cluster is a lab, with the plugin that shows it.
type cluster struct {
	t    *testing.T
	lab  *lab.Lab
	civo *lab.Civo // the provider of the test's Drydock
	// entered are the tabs that have opened a page. roots are the beginnings of the pages'
	// addresses.
	entered map[*browser.Tab]*lab.Page
	roots   map[*lab.Page]string
}

var chromium struct {
	sync.Once
	*browser.Browser
	err error
}

// tab opens a new tab of the tests' Chromium, without cookies.
func tab(t *testing.T) *browser.Tab {
	t.Helper()
	browser.Need(t)
	chromium.Do(func() { chromium.Browser, chromium.err = browser.Start(context.WithoutCancel(t.Context())) })
	require.NoError(t, chromium.err)
	made, err := chromium.Tab()
	require.NoError(t, err)
	t.Cleanup(made.Close)
	return made
}

// newCluster returns the shared lab. No node has anything of Drydock's, and the ledger is empty.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	browser.Need(t)
	return settled(t, lab.Shared(t))
}

func settled(t *testing.T, l *lab.Lab) *cluster {
	t.Helper()
	c := &cluster{t: t, lab: l, entered: map[*browser.Tab]*lab.Page{}, roots: map[*lab.Page]string{}}
	c.settle()
	return c
}

// settle removes what earlier tests left, and writes an empty ledger.
func (c *cluster) settle() {
	c.t.Helper()
	calm := &ledger.Ledger{Status: ledger.Status{Mode: remediations.ModeEnforce, Limits: map[string]string{"concurrent": "1"}}}
	require.NoError(c.t, c.lab.Forget(c.t.Context(), calm))
}

func (c *cluster) ledger(l *ledger.Ledger) {
	c.t.Helper()
	require.NoError(c.t, c.lab.WriteLedger(c.t.Context(), l))
}

// patch sets annotations and labels. If a map is nil, all annotations or labels stay as they are.
func (c *cluster) patch(node string, annotations, labels map[string]any) {
	c.t.Helper()
	metadata := map[string]any{}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	if labels != nil { // a null would remove all of them
		metadata["labels"] = labels
	}
	c.patchNode(node, map[string]any{"metadata": metadata})
}

func (c *cluster) cordon(node string, cordoned bool) {
	c.t.Helper()
	c.patchNode(node, map[string]any{"spec": map[string]any{"unschedulable": cordoned}})
}

func (c *cluster) patchNode(node string, patch any) {
	c.t.Helper()
	text, err := json.Marshal(patch)
	require.NoError(c.t, err)
	_, err = c.lab.Client().CoreV1().Nodes().Patch(context.WithoutCancel(c.t.Context()), node, types.MergePatchType, text, metav1.PatchOptions{FieldManager: remediations.FieldManager})
	require.NoError(c.t, err)
}

func (c *cluster) node(name string) *corev1.Node {
	c.t.Helper()
	n, err := c.lab.Client().CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return n
}

// record writes a repair on the node, as Drydock does: the record and the phase label in one PATCH.
// change may be nil.
func (c *cluster) record(node string, phase remediations.Phase, change func(*remediations.Record)) *remediations.Record {
	c.t.Helper()
	at := time.Now().UTC().Truncate(time.Second).Add(-3 * time.Minute)
	id := idOf(node)
	r := &remediations.Record{
		V: 1, ID: id, Policy: "node-not-ready", Cause: remediations.Cause{Alert: remediations.Fingerprint(labelsOf(node))}, Phase: phase,
		Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: at, Since: at, Deadline: at.Add(time.Hour),
	}
	if phase != remediations.PhasePending {
		r.Intent = &remediations.Intent{ID: id + "-0-1", At: at, Outcome: remediations.CallAccepted}
		r.Done = remediations.Attempts{{Name: "reboot", Number: 1}}
	}
	if change != nil {
		change(r)
	}
	c.patch(node, map[string]any{remediations.NodeRepairKey: r.Encode()}, map[string]any{remediations.PhaseLabel: string(phase)})
	return r
}

// idOf returns the ID of the repair that record writes.
func idOf(node string) string { return remediations.Fingerprint(map[string]string{"node": node})[:6] }

func labelsOf(node string) map[string]string {
	return map[string]string{"alertname": "NodeNotReady", "node": node, "remediation": "node-not-ready", "severity": "critical"}
}

// ui runs `kubectl drydock ui` until the test ends, as the user of the kubeconfig. If kubeconfig is
// empty, the user is the administrator.
func (c *cluster) ui(kubeconfig string, args ...string) *lab.Page {
	c.t.Helper()
	p, err := c.lab.StartPage(c.t.Context(), kubeconfig, args...)
	require.NoError(c.t, err)
	c.t.Cleanup(p.Stop)
	return p
}

// open opens a path of the page. In a tab that has not opened the page yet, it first opens an
// address that the command printed.
func (c *cluster) open(at *browser.Tab, p *lab.Page, path string) {
	c.t.Helper()
	if c.entered[at] != p {
		address, err := p.Fresh(c.t.Context())
		require.NoError(c.t, err)
		require.NoError(c.t, at.Open(c.t.Context(), address))
		root, err := browser.Eval[string](c.t.Context(), at, `location.origin + location.pathname`)
		require.NoError(c.t, err)
		c.entered[at], c.roots[p] = p, strings.TrimSuffix(root, "/")
		if path == "/" {
			return
		}
	}
	require.NoError(c.t, at.Open(c.t.Context(), c.roots[p]+path))
}

// await waits until the expression is true on the page. If it never is, the failure shows the
// page's text.
func await(t *testing.T, at *browser.Tab, what, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	if err := at.Await(ctx, expression); err != nil {
		shown, _ := browser.Eval[string](t.Context(), at, "location.href + '\\n' + document.body.innerText")
		require.NoError(t, err, "%s; the page shows:\n%s", what, shown)
	}
}

// tile returns the JavaScript expression for a node's tile on the Fleet page.
func tile(node string) string {
	return fmt.Sprintf(`document.querySelector('a[data-node="%s"]')`, node)
}

func hasState(node string, states ...string) string {
	return fmt.Sprintf(`%s.includes(%s?.dataset.state)`, quoted(states), tile(node))
}

// shows returns a JavaScript expression that is true if the page's visible text has all of these
// texts.
func shows(texts ...string) string {
	return fmt.Sprintf(`%s.every(s => document.body.innerText.includes(s))`, quoted(texts))
}

func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("encoding a text: " + err.Error())
	}
	return string(text)
}
