package ui

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

// TestTheNodesPageHasWhatWhyHas: each fact of `why -o json` is in the page's JSON under the same
// name, with the same value.
func TestTheNodesPageHasWhatWhyHas(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]*corev1.Node{
		"well":         node("node-3"),
		"under repair": node("node-3", withAlert(now.Add(-5*time.Minute)), withRecord("n7q4k2", remediations.PhaseVerifying)),
		"paused":       node("node-3", withAlert(now.Add(-5*time.Minute)), func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true ticket 12" }),
		"exhausted":    node("node-3", withRecord("n7q4k2", remediations.PhaseExhausted)),
		"a sidecar":    node("node-3", withSidecar),
		"both":         node("node-3", withAlert(now.Add(-5*time.Minute)), withSidecar),
		"malformed":    node("node-3", func(n *corev1.Node) { n.Annotations[remediations.NodeRepairKey] = "{" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, append(installed(), n)...)
			d.allow()
			s, err := d.reader().Observe(t.Context(), "node-3", inspect.Sources{})
			require.NoError(t, err)
			text, err := json.Marshal(s.Why())
			require.NoError(t, err)
			var want map[string]any
			require.NoError(t, json.Unmarshal(text, &want))
			got := d.facts("/nodes/node-3.json")
			for key, value := range want {
				require.Equal(t, value, got[key], key)
			}
			require.Equal(t, s.Why().Headline(now), got["headline"])
			require.Contains(t, d.get("/nodes/node-3"), "node-3")
		})
	}
}

// TestTheTimelineShowsTheRepair from its alert to the awaited proof, each with its time.
func TestTheTimelineShowsTheRepair(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("node-3", withAlert(now.Add(-6*time.Minute)), withRecord("n7q4k2", remediations.PhaseVerifying)))...)
	d.allow()
	var page struct{ Timelines []inspect.Timeline }
	require.NoError(t, json.Unmarshal([]byte(d.get("/nodes/node-3.json")), &page))
	require.Len(t, page.Timelines, 1)
	var names []string
	for i, m := range page.Timelines[0].Moments {
		names = append(names, m.Name)
		if i > 0 {
			require.False(t, m.At.Before(page.Timelines[0].Moments[i-1].At), "in the order of time")
		}
	}
	require.Equal(t, []string{"alert", "alert", "repair", "intent", "answer", "proof"}, names)
	last := page.Timelines[0].Moments[5]
	require.True(t, last.Due)
	require.Equal(t, now.Add(7*time.Minute), last.At)
	html := d.get("/nodes/node-3")
	require.Contains(t, html, `<time datetime="2026-11-23T21:12:00Z">2026-11-23T21:12:00Z</time>`, "without the script, the plain time")
	require.Contains(t, html, "civo accepted reboot:1")

	d = open(t, append(installed(), node("node-3", withRecord("n7q4k2", remediations.PhaseActing, func(r *remediations.Record) { r.Intent.Outcome = "" })))...)
	d.allow()
	require.Contains(t, d.get("/nodes/node-3"), "the call for reboot:1 has no answer yet; it counts as an attempt")
}

// TestTheNodesPageHasItsRepairsThatEnded: what was done, what would have been done, and that
// nothing was done.
func TestTheNodesPageHasItsRepairsThatEnded(t *testing.T) {
	t.Parallel()
	reboot := func(n int) remediations.Attempt { return remediations.Attempt{Name: "reboot", Number: n} }
	d := open(t, append(installed(), node("node-3", func(n *corev1.Node) {
		history := ""
		for _, e := range []remediations.Entry{
			{ID: "aaaaaa", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{reboot(1), reboot(2)}},
			{ID: "bbbbbb", Policy: "node-not-ready", Outcome: remediations.OutcomeSelfRecovered, Steps: remediations.Attempts{}},
			{ID: "cccccc", Policy: "node-not-ready", Outcome: remediations.OutcomeObserved, Steps: remediations.Attempts{}, Would: &remediations.Would{Step: reboot(1)}},
		} {
			e.Began, e.Ended = now.Add(-time.Hour), now.Add(-50*time.Minute)
			history = remediations.EncodeHistory(remediations.DecodeHistory(history), e)
		}
		n.Annotations[remediations.HistoryKey] = history
	}))...)
	d.allow()
	html := d.get("/nodes/node-3")
	for _, says := range []string{"reboot:1, reboot:2 by policy node-not-ready", "no step by policy node-not-ready", "would have done reboot:1 by policy node-not-ready"} {
		require.Contains(t, html, says)
	}
}

func TestTheFirstGuardThatHoldsIsMarked(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("node-3", withAlert(now.Add(-5*time.Minute)), func(n *corev1.Node) {
		n.Annotations[remediations.PauseKey] = inspect.Stamp(now.Add(time.Hour)) + " disk swap"
	}))...)
	d.allow()
	html := d.get("/nodes/node-3")
	require.Contains(t, html, "Held by Paused")
	require.Contains(t, html, "disk swap")
	require.Contains(t, html, "kubectl drydock resume node-3")
	require.Contains(t, html, `datetime="2026-11-23T22:05:00Z"`)
	require.Equal(t, 1, strings.Count(html, `class="first"`))
	require.Regexp(t, `class="first"><th scope="row">Paused</th>`, html)
}

// TestTheGuardsOfEachTargetAreShown: those of the node first, then those of the sidecar on it.
func TestTheGuardsOfEachTargetAreShown(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("node-3", withAlert(now.Add(-5*time.Minute)), withSidecar))...)
	d.allow()
	html := d.get("/nodes/node-3")
	require.Regexp(t, `(?s)node-3 is about to be repaired\..*TooYoung.*node-3 \(sei/rpc-0\) is about to be repaired, unless .*SidecarUnknown.*not asked from here`, html)
	require.Equal(t, 2, strings.Count(html, `class="guards"`))
}

func TestTheNodesEventsAreShownOrTheReasonWhyNot(t *testing.T) {
	t.Parallel()
	objects := append(installed(), node("node-3"), node("node-4"))
	objects = append(objects, events("node-3", "RepairStarted", "RepairStepIssued")...)
	objects = append(objects, events("node-4", "RepairHeld")...)
	d := open(t, objects...)
	d.allow()
	html := d.get("/nodes/node-3")
	require.Less(t, strings.Index(html, "RepairStepIssued"), strings.Index(html, "RepairStarted"), "the newest first")
	require.NotContains(t, html, "RepairHeld", "of another node")
	d.react("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no rights"))
	})
	require.Contains(t, d.get("/nodes/node-3"), "the Node&#39;s Events: ")
}

func TestANodeThatIsNotThere(t *testing.T) {
	t.Parallel()
	d := open(t, installed()...)
	for path, want := range map[string]string{
		"/nodes/node-9":      "there is no node &#34;node-9&#34; in this cluster",
		"/nodes/node-9.json": `there is no node \"node-9\" in this cluster`,
		"/nodes/..%2Fx":      "This is not a valid name of a node.",
	} {
		res, body := d.do(d.request(http.MethodGet, path))
		require.Equal(t, http.StatusNotFound, res.StatusCode, path)
		require.Contains(t, body, want)
	}
}

// TestLinksLeadToAnAlertmanagerByHTTPAlone: an address that a browser would run, or that has a
// password, does not become a link.
func TestLinksLeadToAnAlertmanagerByHTTPAlone(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://localhost:9093":            "http://localhost:9093",
		"https://u:secret@am.example/pre/": "https://am.example/pre",
		"javascript:alert(1)":              "",
		"data://x/y":                       "",
		"//elsewhere":                      "",
	} {
		require.Equal(t, want, pageOf(address), address)
	}
	p := &nodePage{addresses: []string{"javascript:alert(1)", "http://am"}}
	require.Equal(t, `http://am/#/alerts?filter=%7Balertname%3D%22a%5C%22b%22%7D`, p.AlertLink(inspect.Alert{Name: `a"b`}))
}

// TestWhatAnybodyWroteIsHarmlessOnTheNodesPage: none of it becomes markup, and no invisible
// character leaves the server.
func TestWhatAnybodyWroteIsHarmlessOnTheNodesPage(t *testing.T) {
	t.Parallel()
	const hostile = "\"><script>alert(1)</script>\u202e\x1b[31m\u200b"
	n := node("node-3", withAlert(now.Add(-5*time.Minute)), withRecord("n7q4k2", remediations.PhasePending, func(r *remediations.Record) {
		r.Note = hostile
		r.Hold = &remediations.Hold{Reason: "Silenced", Message: hostile, Since: now}
	}), func(n *corev1.Node) {
		n.Annotations[remediations.PauseKey] = "true " + hostile
		n.Annotations["drydock.dev/odd"] = hostile
		n.Labels[corev1.LabelTopologyZone] = hostile
	})
	d := open(t, append(append(installed(), n), events("node-3", hostile)...)...)
	d.allow()
	for _, path := range []string{"/nodes/node-3", "/queue", "/report"} {
		html := d.get(path)
		require.NotContains(t, html, "<script>alert", path)
		for _, r := range []string{"\u202e", "\x1b", "\u200b"} {
			require.NotContains(t, html, r, path)
		}
	}
	require.Contains(t, d.get("/nodes/node-3"), "&lt;script&gt;alert(1)", "the control: it is shown")
	for _, path := range []string{"/nodes/node-3.json", "/queue.json", "/report.json"} {
		for _, r := range []string{"\u202e", "\x1b", "\u200b"} {
			require.NotContains(t, d.get(path), r, path)
		}
	}
}

// TestTheQueueIsInTheEnginesOrder: repairs under way are separate; then the oldest fault is first.
// Each has its hold.
func TestTheQueueIsInTheEnginesOrder(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(),
		node("node-1"), // the control: nothing concerns it
		node("young", withAlert(now.Add(-time.Minute))),
		node("old", withAlert(now.Add(-time.Hour)), withRecord("bbbbbb", remediations.PhasePending, func(r *remediations.Record) {
			r.Hold = &remediations.Hold{Reason: remediations.ReasonAwaitingApproval, Message: "a person must approve it", Since: now}
		})),
		node("busy", withAlert(now.Add(-2*time.Minute)), withRecord("aaaaaa", remediations.PhaseVerifying)),
		node("spent", withRecord("cccccc", remediations.PhaseExhausted)),
	)...)
	var q inspect.Queue
	require.NoError(t, json.Unmarshal([]byte(d.get("/queue.json")), &q))
	var waiting []string
	for _, p := range q.Waiting {
		waiting = append(waiting, p.Node)
	}
	require.Equal(t, []string{"old", "young", "spent"}, waiting)
	require.Len(t, q.UnderWay, 1)
	require.Equal(t, "busy", q.UnderWay[0].Node)
	require.Equal(t, now.Add(7*time.Minute), *q.UnderWay[0].Deadline)
	require.Equal(t, remediations.ReasonAwaitingApproval, q.Waiting[0].Hold.Reason)
	require.Equal(t, "kubectl drydock approve old", q.Waiting[0].Change)
	require.Nil(t, q.Waiting[1].Hold)
	html := d.get("/queue")
	require.Less(t, strings.Index(html, `href="`+d.door.root+`/nodes/old"`), strings.Index(html, `href="`+d.door.root+`/nodes/young"`))
}

func TestTheReportIsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("node-3", withRecord("cccccc", remediations.PhaseExhausted)))...)
	res, html := d.do(d.request(http.MethodGet, "/report?since=36h"))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, html, "node-not-ready")
	require.Contains(t, html, `<a href="`+d.door.root+`/queue">Queue</a>`)
	require.Equal(t, reportPolicy, res.Header.Get("Content-Security-Policy"))
	require.NotContains(t, html, "<script")
	require.Equal(t, "2026-11-22T09:05:00Z", d.facts("/report.json?since=36h")["from"])
	res, body := d.do(d.request(http.MethodGet, "/report?since=soon"))
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.Contains(t, body, "write how far the report goes back")
}

// TestOnlyCommandsLookLikeCommands: what a person may do about a hold is often a sentence around a
// command.
func TestOnlyCommandsLookLikeCommands(t *testing.T) {
	t.Parallel()
	for change, want := range map[string][]piece{
		"kubectl drydock resume node-3":               {{"kubectl drydock resume node-3", true}},
		"amtool silence expire 8a1":                   {{"amtool silence expire 8a1", true}},
		"`kubectl drydock status` says more":          {{"kubectl drydock status", true}, {" says more", false}},
		"the time intervals of the route in a file":   {{"the time intervals of the route in a file", false}},
		"once it is fixed: `kubectl drydock reset n`": {{"once it is fixed: ", false}, {"kubectl drydock reset n", true}},
	} {
		require.Equal(t, want, changed(change))
	}
	d := open(t, append(installed(), node("node-3", withAlert(now.Add(-5*time.Minute)), func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true" }))...)
	d.allow()
	require.Contains(t, d.get("/nodes/node-3"), "<dd><code>kubectl drydock resume node-3</code></dd>")
}

// TestAHoldWithoutAMessageEndsInNoColon, on no page. One with a message is the control.
func TestAHoldWithoutAMessageEndsInNoColon(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"", "the cloud answers nothing"} {
		held := withRecord("aaaaaa", remediations.PhasePending, func(r *remediations.Record) {
			r.Hold = &remediations.Hold{Reason: remediations.ReasonProviderUnreachable, Message: message, Since: now.Add(-time.Minute)}
		})
		d := open(t, append(installed(), node("n", held, unready))...)
		for _, path := range []string{"/", "/queue", "/nodes/n"} {
			html := d.get(path)
			require.Contains(t, html, "ProviderUnreachable", path)
			require.NotRegexp(t, `ProviderUnreachable(</b>)?( holds the repair)?: ?<`, html, path)
			if message != "" {
				require.Regexp(t, `ProviderUnreachable(</b>)?( holds the repair)?: the cloud answers nothing`, html, path)
			}
		}
	}
}
