package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
)

// loadedOnce sets a variable on a page. If the page is loaded again, the variable is gone.
const loadedOnce = "window.loadedOnce"

func markLoaded(t *testing.T, at *browser.Tab) {
	t.Helper()
	_, err := browser.Eval[bool](t.Context(), at, loadedOnce+" = true")
	require.NoError(t, err)
}

func notLoadedAgain(t *testing.T, at *browser.Tab) {
	t.Helper()
	once, err := browser.Eval[bool](t.Context(), at, "!!"+loadedOnce)
	require.NoError(t, err)
	require.True(t, once, "the page was loaded again")
}

func TestATileChangesWithItsNode(t *testing.T) {
	c := newCluster(t)
	const node = "node-0"
	at := tab(t)
	p := c.ui("")
	c.open(at, p, "/")
	await(t, at, "the node is well", hasState(node, "well"))
	markLoaded(t, at)

	for _, step := range []struct {
		state string
		cause func()
	}{
		{"held", func() {
			c.record(node, remediations.PhasePending, func(r *remediations.Record) {
				r.Hold = &remediations.Hold{Reason: remediations.ReasonAwaitingApproval, Message: "the policy asks a person first", Since: r.Since}
			})
		}},
		{"repairing", func() { c.record(node, remediations.PhaseVerifying, nil) }},
		{"exhausted", func() { c.record(node, remediations.PhaseExhausted, nil) }},
		{"well", func() {
			c.patch(node, map[string]any{remediations.NodeRepairKey: nil}, map[string]any{remediations.PhaseLabel: nil})
		}},
		{"paused", func() { c.patch(node, map[string]any{remediations.PauseKey: "true disk"}, nil) }},
		{"well", func() { c.patch(node, map[string]any{remediations.PauseKey: nil}, nil) }},
		{"cordoned", func() { c.cordon(node, true) }},
		{"well", func() { c.cordon(node, false) }},
	} {
		began := time.Now()
		step.cause()
		await(t, at, "the tile is "+step.state, hasState(node, step.state))
		t.Logf("%s on the page %s after its cause", step.state, time.Since(began).Round(time.Millisecond))
		notLoadedAgain(t, at)
	}
	require.NoError(t, c.lab.Client().CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}))
	await(t, at, "a node that is gone has no tile", "!"+tile(node))
	notLoadedAgain(t, at)
	spec := lab.CivoNodes(1)[0]
	spec.Zone, spec.Pool = "zone-0", "workers"
	require.NoError(t, c.lab.AddNode(t.Context(), spec))
	await(t, at, "a node that is new has a tile", tile(node))
	notLoadedAgain(t, at)
}

func TestTheJSONIsWhatThePageShows(t *testing.T) {
	c := newCluster(t)
	c.record("node-1", remediations.PhaseVerifying, nil)
	at := tab(t)
	c.open(at, c.ui(""), "/")
	await(t, at, "the repair is shown", hasState("node-1", "repairing"))
	type fleetJSON struct {
		Groups []struct {
			Nodes []struct {
				Node, State string
			}
		}
	}
	text, err := browser.Eval[string](t.Context(), at, `fetch("fleet.json").then(r => r.text())`)
	require.NoError(t, err)
	var facts fleetJSON
	require.NoError(t, json.Unmarshal([]byte(text), &facts))
	states := map[string]string{}
	for _, g := range facts.Groups {
		for _, n := range g.Nodes {
			states[n.Node] = n.State
		}
	}
	shown, err := browser.Eval[map[string]string](t.Context(), at, `Object.fromEntries([...document.querySelectorAll("a[data-node]")].map(a => [a.dataset.node, a.dataset.state]))`)
	require.NoError(t, err)
	require.Equal(t, shown, states)
	require.Len(t, states, fleet)
}

// The API server goes away while a page is open, and comes back.
func TestThePageSaysThatItIsNotCurrent(t *testing.T) {
	c := newCluster(t)
	const node = "node-2"
	proxy, err := c.lab.NewProxy()
	require.NoError(t, err)
	kubeconfig := c.account("onlooker", readsAll, proxy.URL())
	at := tab(t)
	c.open(at, c.ui(kubeconfig), "/")
	await(t, at, "the node is well, and the page current", hasState(node, "well")+` && document.body.dataset.connection === "ok"`)
	markLoaded(t, at)

	var away atomic.Bool
	away.Store(true)
	proxy.Before(func(*http.Request) lab.Verdict {
		if away.Load() {
			return lab.Reset
		}
		return lab.Pass
	})
	began := time.Now()
	await(t, at, "the page says that it is not current", `document.body.dataset.connection === "lost" && `+shows("Not current"))
	t.Logf("the page says so %s after the API server went away", time.Since(began).Round(time.Millisecond))
	require.NotEmpty(t, tileState(t, at, node), "what was known stays")

	// What has happened in between is on the page once the API server is back.
	c.record(node, remediations.PhaseVerifying, nil)
	away.Store(false)
	began = time.Now()
	await(t, at, "the page is current again", `document.body.dataset.connection === "ok" && `+hasState(node, "repairing"))
	t.Logf("current again %s after the API server came back", time.Since(began).Round(time.Millisecond))
	notLoadedAgain(t, at)
}

func tileState(t *testing.T, at *browser.Tab, node string) string {
	t.Helper()
	state, err := browser.Eval[string](t.Context(), at, tile(node)+".dataset.state")
	require.NoError(t, err)
	return state
}

// The command ends while a page is open, and the page says so.
func TestThePageSaysThatItsCommandEnded(t *testing.T) {
	c := newCluster(t)
	at := tab(t)
	p := c.ui("")
	c.open(at, p, "/")
	await(t, at, "the page is current", `document.body.dataset.connection === "ok"`)
	p.Stop()
	await(t, at, "the page says that it is not current", `document.body.dataset.connection === "lost"`)
}

// A node breaks, is held by a silence, is repaired, and the cure is proven. Its page shows each of
// these as it happens.
func TestTheNodesPageShowsTheRepair(t *testing.T) {
	c := newCluster(t)
	d := c.drydock(map[string]any{})
	const node = "node-3"
	silence := c.silence("ada@example.com", "the disk is being swapped", "node="+node)
	at := tab(t)
	p := c.ui("", c.whyFlags(d)...)
	fleetPage := tab(t)
	c.open(fleetPage, p, "/")
	await(t, fleetPage, "the node is well", hasState(node, "well"))
	c.open(at, p, "/nodes/"+node)
	await(t, at, "the node's page", shows(node))
	markLoaded(t, at)

	broke := time.Now()
	require.NoError(t, c.lab.SetCondition(t.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	t.Cleanup(func() { _ = c.lab.Heal(context.WithoutCancel(t.Context()), node, "") })
	await(t, fleetPage, "the tile is no longer well", "!"+hasState(node, "well"))
	t.Logf("the tile changed %s after the node broke", time.Since(broke).Round(time.Millisecond))
	await(t, fleetPage, "the tile is held", hasState(node, "held"))
	await(t, at, "the page names the silence and its maker", shows("Silenced", silence.id, "ada@example.com", "the disk is being swapped"))

	await(t, at, "the silences stand with their makers", fmt.Sprintf(`%s.every(s => document.querySelector(".silences").innerText.includes(s))`, quoted([]string{silence.id, "ada@example.com", "the disk is being swapped"})))
	alertmanager := c.lab.AlertmanagerURLs()[0]
	await(t, at, "the alert and the silence lead to Alertmanager", fmt.Sprintf(`document.querySelector('.alerts a[href^="%[1]s/#/alerts?"]') && document.querySelector('.silences a[href="%[1]s/#/silences/%[2]s"]')`, alertmanager, silence.id))

	silence.expire()
	await(t, fleetPage, "the tile is under repair", hasState(node, "repairing", "well"))
	await(t, at, "the page tells the call and its answer", shows("accepted"))
	await(t, at, "the page tells the proof", shows("Recovered"))
	await(t, fleetPage, "the tile is well again", hasState(node, "well"))
	notLoadedAgain(t, at)
	require.Equal(t, 1, c.reboots(node))
}
