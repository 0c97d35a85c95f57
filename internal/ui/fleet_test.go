package ui

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// listen opens a page's stream, from the page's version.
func (d *desk) listen() *bufio.Scanner {
	d.t.Helper()
	_, version, _ := strings.Cut(d.get("/"), `data-version="`)
	version, _, _ = strings.Cut(version, `"`)
	res, err := d.client.Do(d.request(http.MethodGet, "/events?page=fleet&since="+version))
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = res.Body.Close() })
	require.Equal(d.t, "text/event-stream", res.Header.Get("Content-Type"))
	return bufio.NewScanner(res.Body)
}

// until returns the first change that want accepts.
func until(t *testing.T, s *bufio.Scanner, want func(change) bool) change {
	t.Helper()
	for s.Scan() {
		if data, is := strings.CutPrefix(s.Text(), "data: "); is {
			var c change
			require.NoError(t, json.Unmarshal([]byte(data), &c))
			if want(c) {
				return c
			}
		}
	}
	require.NoError(t, s.Err())
	require.Fail(t, "the stream ended")
	return change{}
}

func ofNodes(c change) bool { return len(c.Nodes) > 0 }

func (d *desk) fleet() (p fleetPage) {
	d.t.Helper()
	require.NoError(d.t, json.Unmarshal([]byte(d.get("/fleet.json")), &p))
	return p
}

func TestAChangeIsSentForItsTileAlone(t *testing.T) {
	t.Parallel()
	d := open(t, node("node-1"), node("node-2"), node("node-3"))
	s := d.listen()
	nodes := d.cluster.CoreV1().Nodes()
	// A heartbeat changes no tile.
	beat := node("node-1")
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now)
	_, err := nodes.UpdateStatus(t.Context(), beat, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = nodes.UpdateStatus(t.Context(), node("node-2", unready), metav1.UpdateOptions{})
	require.NoError(t, err)
	c := until(t, s, ofNodes)
	require.Equal(t, []string{"node-2"}, c.Nodes)
	require.Len(t, c.Tiles, 1)
	require.Equal(t, "node-2", c.Tiles[0].Node)
	require.Equal(t, Unhealthy, c.Tiles[0].State)
	require.Contains(t, c.Tiles[0].HTML, `data-state="unhealthy"`)
	require.Empty(t, c.Gone)
	require.Contains(t, d.get("/"), c.Tiles[0].HTML, "a reload shows the same")

	require.NoError(t, nodes.Delete(t.Context(), "node-3", metav1.DeleteOptions{}))
	c = until(t, s, ofNodes)
	require.Empty(t, c.Tiles)
	require.Equal(t, []string{"node-3"}, c.Gone)
	require.NotContains(t, d.get("/"), "node-3")
}

// Many tiles are squares: on the page, and in what is sent to it later.
func TestManyTilesAreSquares(t *testing.T) {
	t.Parallel()
	for many, density := range map[int]string{denseAbove: "", denseAbove + 1: "dense", smallTilesAbove: "dense", smallTilesAbove + 1: "crowd"} {
		f := newFleet()
		for i := range many {
			f.put(node(fmt.Sprintf("node-%d", i)), now)
		}
		p := f.page(now)
		require.Equal(t, density, p.Density(), "%d nodes", many)
		require.Equal(t, density != "", p.Square(), "%d nodes", many)
	}
	var nodes []runtime.Object
	for i := range denseAbove + 1 {
		nodes = append(nodes, node(fmt.Sprintf("node-%d", i)))
	}
	d := open(t, nodes...)
	require.Contains(t, d.get("/"), `aria-label="node-7: well"`, "a square says what it does not show")
	s := d.listen()
	_, err := d.cluster.CoreV1().Nodes().UpdateStatus(t.Context(), node("node-7", unready), metav1.UpdateOptions{})
	require.NoError(t, err)
	c := until(t, s, ofNodes)
	require.Equal(t, "dense", c.Density, "a page that has its tiles otherwise is loaded again")
	require.Contains(t, c.Tiles[0].HTML, `aria-label="node-7: unhealthy"`)
	require.Contains(t, d.get("/"), c.Tiles[0].HTML, "a reload shows the same")
}

// At first five rows are shown. There is no checkbox if there are no more.
func TestALongTableIsFolded(t *testing.T) {
	t.Parallel()
	for many, folded := range map[int]bool{fewConcern: false, fewConcern + 1: true} {
		var nodes []runtime.Object
		for i := range many {
			nodes = append(nodes, node(fmt.Sprintf("node-%d", i), unready))
		}
		require.Equal(t, folded, strings.Contains(open(t, nodes...).get("/"), `id="unfold"`), "%d rows", many)
	}
}

func TestTheLedgersChangeIsSentWithWhatItHolds(t *testing.T) {
	t.Parallel()
	calm := ledger.Status{Mode: remediations.ModeEnforce, Limits: map[string]string{"unhealthy": "20%"}}
	d := open(t, ledgerWith(calm), node("node-1", unready, record(remediations.PhasePending)), node("node-2"))
	require.Equal(t, Unhealthy, d.fleet().Concern[0].State)
	s := d.listen()
	blind := calm
	blind.Blind = "no Alertmanager answers since 21:01"
	_, err := d.cluster.CoreV1().ConfigMaps("drydock").Update(t.Context(), ledgerWith(blind), metav1.UpdateOptions{})
	require.NoError(t, err)
	c := until(t, s, func(c change) bool { return strings.Contains(c.Parts["force"], blind.Blind) })
	require.True(t, c.Force)
	p := d.fleet()
	require.Contains(t, p.InForce, fact{"Blind", "yes: " + blind.Blind, false})
	require.NotContains(t, p.InForce, fact{"Blind", "no", true})
}

func TestEachStateIsShown(t *testing.T) {
	t.Parallel()
	held := func(r *remediations.Record) {
		r.Hold = &remediations.Hold{Reason: remediations.ReasonCooldown, Message: "the last repair ended 2m ago", Since: now}
	}
	for want, n := range map[State]*corev1.Node{
		Well:      node("n"),
		Unhealthy: node("n", unready),
		Held:      node("n", unready, record(remediations.PhasePending, held)),
		Repairing: node("n", record(remediations.PhaseVerifying)),
		Exhausted: node("n", record(remediations.PhaseExhausted)),
		Paused:    node("n", unready, record(remediations.PhasePending), annotated(remediations.PauseKey, "true")),
		Cordoned:  node("n", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
	} {
		tile := tileOf(trim(n), &inspect.Ledger{}, now)
		require.Equal(t, want, tile.State)
		html, err := fragments().fragment("tile", tile)
		require.NoError(t, err)
		require.Contains(t, html, string(want), "the text says it")
		require.Contains(t, html, want.look().Shape, "and the shape")
	}
	require.Equal(t, Paused, tileOf(node("n", annotated(remediations.PauseKey, "2026-11-23T21:06:00Z")), &inspect.Ledger{}, now).State)
	require.Equal(t, Well, tileOf(node("n", annotated(remediations.PauseKey, "2026-11-23T21:04:00Z")), &inspect.Ledger{}, now).State, "a pause that is over")
	require.Equal(t, Paused, tileOf(node("n", labelled(remediations.ExcludeLabel, "true")), &inspect.Ledger{}, now).State)
	require.Equal(t, Held, tileOf(node("n", annotated(remediations.NodeRepairKey, "{")), &inspect.Ledger{}, now).State, "a record that cannot be read")
	require.Equal(t, Repairing, tileOf(node("n", record(remediations.PhaseActing), annotated(remediations.PauseKey, "true")), &inspect.Ledger{}, now).State)
	shapes := map[string]bool{}
	for _, l := range states {
		require.False(t, shapes[l.Shape], "%s looks like another state", l.State)
		shapes[l.Shape] = true
	}
}

// TestThePageCountsWhatABreakerCounts: it counts no excluded node and no node that is still
// starting. For a breaker that is not closed it shows Drydock's own count. A node of last month
// that is not Ready is the control.
func TestThePageCountsWhatABreakerCounts(t *testing.T) {
	t.Parallel()
	since := func(ago time.Duration) func(*corev1.Node) {
		return func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(now.Add(-ago)) }
	}
	fleet := func(breakers map[string]ledger.Breaker) []scope {
		d := open(t, ledgerWith(ledger.Status{Limits: map[string]string{"unhealthy": "40%", "startupGrace": "10m"}, Breakers: breakers}),
			node("node-1", unready, since(30*24*time.Hour)), node("node-2", unready, since(9*time.Minute)), node("node-3", unready, since(11*time.Minute)),
			node("node-4", unready, since(time.Hour), labelled(remediations.ExcludeLabel, "true")), node("node-5", since(time.Hour)))
		require.Contains(t, d.get("/"), "It does not count excluded nodes")
		return d.fleet().Breakers
	}
	require.Equal(t, []scope{{"cluster", "closed", 2, 3, "40%"}}, fleet(nil))
	require.Equal(t, []scope{{"cluster", "open", 5, 9, "40%"}}, fleet(map[string]ledger.Breaker{"cluster": {State: ledger.BreakerOpen, Since: now, Quiet: now, Unhealthy: 5, Nodes: 9}}))
}

func TestThePageAndItsJSONSayTheSame(t *testing.T) {
	t.Parallel()
	d := open(t, ledgerWith(ledger.Status{
		Mode: remediations.ModeObserve, Limits: map[string]string{"unhealthy": "20%", "concurrent": "1"}, Stopped: map[string]string{"node-not-ready": "the key is refused"},
		Breakers: map[string]ledger.Breaker{"zone/a": {State: ledger.BreakerOpen, Since: now, Quiet: now, Unhealthy: 2, Nodes: 2}},
	}), node("node-1", unready, labelled(corev1.LabelTopologyZone, "a")), node("node-2", labelled(corev1.LabelTopologyZone, "b"), annotated(remediations.PauseKey, "true disk swap"), setWith("kubectl-annotate", remediations.PauseKey)),
		node("node-3", record(remediations.PhaseExhausted), labelled(corev1.LabelTopologyZone, "a")))
	page, p := d.get("/"), d.fleet()
	require.Len(t, p.Groups, 2)
	require.Equal(t, []scope{{"cluster", "closed", 2, 3, "20%"}, {"zone/a", "open", 2, 2, "20%"}, {"zone/b", "closed", 0, 1, "20%"}}, p.Breakers)
	says := map[string][]string{}
	for _, f := range p.InForce {
		says[f.What] = append(says[f.What], f.Says)
		for _, piece := range said(f.Says) {
			require.Contains(t, html.UnescapeString(page), piece.Text)
		}
	}
	require.Equal(t, []string{"node-2: paused (disk swap); set with kubectl-annotate, which last changed the Node at 2026-11-23T20:05:00Z (the API server's audit log names the person); it does not expire; `kubectl drydock resume node-2` ends this"}, says["Paused"])
	require.Contains(t, says["Stopped"][0], "the key is refused")
	require.Contains(t, says["Breaker"][1], "node-1 (not Ready), node-3 (Exhausted)")
	for _, g := range p.Groups {
		for _, tile := range g.Tiles {
			require.Contains(t, page, `data-node="`+tile.Node+`" data-state="`+string(tile.State)+`"`)
		}
	}
	for _, c := range p.Counts {
		require.Contains(t, page, fmt.Sprintf("<b>%d</b> %s", c.Nodes, c.State))
	}
}

// TestThePageShowsWhyDrydockCannotWrite, that another Drydock is in charge, and since when no
// admission request has come.
func TestThePageShowsWhyDrydockCannotWrite(t *testing.T) {
	t.Parallel()
	says := func(status ledger.Status) string {
		return html.UnescapeString(open(t, ledgerWith(status), node("node-1", unready)).get("/"))
	}
	page := says(ledger.Status{
		Denied: "ValidatingAdmissionPolicy 'nodes-by-gitops-only' denied request", Limited: []string{"cordons are refused: the role lacks patch on nodes"},
		Unwritten: map[string]string{"node-1": "alerts cannot be written on the Node: Too long"}, Admission: &ledger.Admission{Serving: now.Add(-time.Hour)},
	})
	for _, part := range []string{
		"ValidatingAdmissionPolicy 'nodes-by-gitops-only' denied request; no repair starts", "cordons are refused", "node-1 is not repaired: alerts cannot be written on the Node: Too long",
		"no request has reached the webhook of the leading replica since its start at",
	} {
		require.Contains(t, page, part)
	}
	require.Contains(t, says(ledger.Status{Aside: "another Drydock is in charge of this cluster: other/drydock"}), "another Drydock is in charge of this cluster: other/drydock; this Drydock changes nothing in the cluster")
	require.NotContains(t, says(ledger.Status{}), "is in charge", "the control")
}

// TestThePageHasTheZonesAndPoolsOfTheConfiguration: by limits.zoneLabel and limits.poolLabels, as
// the ledger has them.
func TestThePageHasTheZonesAndPoolsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	in := func(name, rack string) *corev1.Node {
		return node(name, unready, labelled("example.com/rack", rack), labelled(corev1.LabelTopologyZone, "a"), labelled("example.com/pool", "gpu"), labelled("karpenter.sh/nodepool", "b"))
	}
	d := open(t, ledgerWith(ledger.Status{
		Limits:   remediations.Limits{ZoneLabel: "example.com/rack", PoolLabels: []string{"example.com/pool"}, Unhealthy: remediations.Quantity{Value: 20, Percent: true}}.Words(),
		Breakers: map[string]ledger.Breaker{"zone/r7": {State: ledger.BreakerOpen, Since: now, Quiet: now, Unhealthy: 1, Nodes: 1}},
	}), in("node-1", "r7"), in("node-2", "r8"))
	p := d.fleet()
	require.Equal(t, []scope{{"cluster", "closed", 2, 2, "20%"}, {"zone/r7", "open", 1, 1, "20%"}, {"zone/r8", "closed", 1, 1, "20%"}}, p.Breakers)
	var groups []string
	for _, g := range p.Groups {
		groups = append(groups, g.Zone+"/"+g.Pool)
	}
	require.Equal(t, []string{"r7/gpu", "r8/gpu"}, groups)
}

func TestHostileTextIsHarmless(t *testing.T) {
	t.Parallel()
	const evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>`{{.}}\u202egnp\u0007"
	d := open(t, ledgerWith(ledger.Status{Blind: evil, Holds: map[remediations.Reason]string{remediations.ReasonOutsideWindow: evil}}),
		node("node-1", unready, labelled(corev1.LabelTopologyZone, strings.Repeat(evil, 100)), labelled("karpenter.sh/nodepool", evil), annotated(remediations.PauseKey, "true "+evil)),
		node("node-2", record(remediations.PhasePending, func(r *remediations.Record) {
			r.Policy, r.Hold = evil, &remediations.Hold{Reason: remediations.Reason(evil), Message: strings.Repeat(evil, 100), Since: now}
		})))
	for _, path := range []string{"/", "/fleet", "/fleet.json"} {
		body := d.get(path)
		require.Contains(t, body, "node-1", "the control")
		require.Contains(t, body, "alert(1)", "the control: the text itself is shown")
		require.NotContains(t, body, "<script>alert", path)
		require.NotContains(t, body, "<img", path)
		require.NotContains(t, body, "\u202e", path)
		require.NotContains(t, body, "\u0007", path)
		require.NotContains(t, body, "ZgotmplZ", path)
	}
	for _, tile := range d.fleet().Concern {
		require.LessOrEqual(t, len(tile.Says), maxText+len("…"))
		require.LessOrEqual(t, len(tile.Zone), maxText+len("…"))
	}
}

func TestTheAPIServerGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	d := openWith(t, false, func(c *fake.Clientset) {
		c.PrependReactor("get", "leases", func(clientgotesting.Action) (bool, runtime.Object, error) {
			if away.Load() {
				return true, nil, &url.Error{Op: "Get", URL: "https://secret.example/", Err: errors.New("connection refused")}
			}
			return false, nil, nil
		})
	}, node("node-1"))
	require.Contains(t, d.get("/"), `data-connection="ok"`)
	s := d.listen()
	away.Store(true)
	d.ask <- now
	c := until(t, s, func(c change) bool { return c.Connection != nil })
	require.Equal(t, "lost", c.Connection.State)
	require.Contains(t, c.Connection.HTML, "connection refused")
	require.Contains(t, c.Connection.HTML, "2026-11-23T21:05:00Z", "it says since when what is shown is old")
	require.Contains(t, d.get("/"), `data-connection="lost"`)
	require.True(t, d.fleet().Connection.Lost)
	away.Store(false)
	d.ask <- now
	c = until(t, s, func(c change) bool { return c.Connection != nil })
	require.Equal(t, "ok", c.Connection.State)
	require.Contains(t, d.get("/"), `data-connection="ok"`)
}

func TestTheFleetPageNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	page := open(t).get("/")
	require.Contains(t, page, "There is no node in this cluster.")
	require.Contains(t, page, "there is no ConfigMap drydock-ledger in namespace drydock")

	denied := openWith(t, false, func(c *fake.Clientset) {
		c.PrependReactor("*", "nodes", func(clientgotesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New(`User "eve" cannot list resource "nodes"`))
		})
	}).get("/")
	require.Contains(t, html.UnescapeString(denied), `User "eve" cannot list resource "nodes"`)
	require.NotContains(t, denied, "There is no node in this cluster.")
	require.Contains(t, denied, `data-connection="ok"`, "the API server did answer")
}

func TestAPageOfAnotherProcessLoadsAgain(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, since := range []string{"", "0", "another-1"} {
		res, body := d.do(d.request(http.MethodGet, "/events?since="+since))
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Contains(t, body, "event: reload", since)
	}
}

func TestALedgerThatMayNotBeWatchedIsReadAgain(t *testing.T) {
	t.Parallel()
	d := openWith(t, false, func(c *fake.Clientset) {
		c.PrependWatchReactor("configmaps", func(clientgotesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no watch"))
		})
	}, ledgerWith(ledger.Status{Mode: remediations.ModeEnforce}), node("node-1"))
	require.Contains(t, d.fleet().InForce, fact{"Blind", "no", true})
	s := d.listen()
	_, err := d.cluster.CoreV1().ConfigMaps("drydock").Update(t.Context(), ledgerWith(ledger.Status{Blind: "no Alertmanager answers"}), metav1.UpdateOptions{})
	require.NoError(t, err)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-t.Context().Done():
				return
			case d.ask <- now:
			}
		}
	}()
	t.Cleanup(func() { <-asked })
	until(t, s, func(c change) bool { return strings.Contains(c.Parts["force"], "no Alertmanager answers") })
}

// fragments is a page for its templates only.
func fragments() *UI {
	u := &UI{door: &door{}}
	u.common, u.templates = u.parse()
	return u
}

// TestNodesThatMayNotBeReadAreNotCounted: no row says that there are no unhealthy nodes.
func TestNodesThatMayNotBeReadAreNotCounted(t *testing.T) {
	t.Parallel()
	for _, denied := range []bool{true, false} {
		page := openWith(t, false, func(c *fake.Clientset) {
			c.PrependReactor("list", "nodes", func(clientgotesting.Action) (bool, runtime.Object, error) {
				return denied, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no right"))
			})
		}, node("node-1")).get("/")
		require.Equal(t, denied, strings.Contains(page, "The number of healthy nodes is unknown."))
		require.Equal(t, denied, !strings.Contains(page, `data-count="well"`))
	}
}
