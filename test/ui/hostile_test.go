package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// script is a text that, if a page runs it, opens a dialog, loads from another site and writes to
// the console.
const script = `</script></title></style>"'><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)><svg onload=alert(3)>{{alert(4)}}javascript:alert(5)`

// hidden are characters that change how a text looks or where it is shown: direction overrides,
// controls, a line break, an escape for terminals, and a character without width.
const hidden = "\u202e\u2066\u200f\u0000\u001b[31m\u0007\u2028\u200b\r\n"

// hostile writes on the node what anyone could write who may write labels, annotations, alerts or
// silences.
func (c *cluster) hostile(node string) {
	c.t.Helper()
	zone := map[string]any{corev1.LabelTopologyZone: c.node(node).Labels[corev1.LabelTopologyZone]}
	c.t.Cleanup(func() { c.patch(node, nil, zone) })
	text := script + strings.ReplaceAll(hidden, "\u0000", "")
	at := time.Now().UTC().Truncate(time.Second)
	alerts := map[string]any{}
	for i := range 64 {
		labels := map[string]string{
			"alertname": fmt.Sprintf("Alert%d%s", i, text), "node": node, "severity": text, strings.Repeat("l", 200): strings.Repeat("v", 256),
		}
		a := remediations.Alert{V: 1, Name: labels["alertname"], Policy: "node-not-ready", Status: "firing", StartsAt: at, ReceivedAt: at, Labels: labels, Fingerprint: remediations.Fingerprint(labels)}
		alerts[a.Key()] = a.Encode()
	}
	c.patch(node, alerts, nil)
	c.record(node, remediations.PhasePending, func(r *remediations.Record) {
		r.Policy, r.Note, r.Evidence = text, text, text
		r.Hold = &remediations.Hold{Reason: remediations.ReasonSilenced, Message: "covered by silence " + text + strings.Repeat("w", 256), Since: at}
		r.Cause.Alert = remediations.Fingerprint(labelsOf(node))
	})
	entry := remediations.Entry{ID: "aaaaaa", Policy: text, Outcome: remediations.OutcomeExhausted, Steps: remediations.Attempts{remediations.AttemptOf(text)}, Began: at.Add(-time.Hour), Ended: at, Why: text, Cause: "NodeNotReady"}
	c.patch(node, map[string]any{
		remediations.HistoryKey: remediations.EncodeHistory(nil, entry), remediations.PauseKey: "true " + text, remediations.BreakGlassKey: text,
		remediations.RequestKey: text, remediations.ApproveKey: text, "example.com/" + strings.Repeat("k", 50): text,
	}, map[string]any{corev1.LabelTopologyZone: strings.Repeat("z", 63), "drydock.dev/exclude": "x" + strings.Repeat("-", 60) + "x"})
}

// Whatever the cluster contains is only text on every page: it opens nothing, loads nothing, writes
// nothing to the console, and moves nothing on the page.
func TestHostileContentIsShownAsText(t *testing.T) {
	c := newCluster(t)
	const node, other = "node-7", "node-8"
	c.hostile(node)
	policy := script + strings.Repeat("p", 253) // a long text without a break must not make the page wider
	c.record(other, remediations.PhaseVerifying, func(r *remediations.Record) { r.Policy = policy })
	c.ledger(&ledger.Ledger{
		Slots: []ledger.Slot{{Node: script, Repair: script, Attempt: script, Zone: script}},
		Status: ledger.Status{
			Mode: remediations.ModeEnforce, Blind: script + hidden, Limits: map[string]string{"concurrent": script},
			Stopped: map[string]string{script: script + hidden}, Holds: map[remediations.Reason]string{remediations.ReasonAtLimit: script + hidden},
		},
	})
	event := fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {generateName: hostile-, namespace: default, name: hostile-%d}
involvedObject: {apiVersion: v1, kind: Node, name: %s}
reason: RepairHeld
message: %s
type: Warning
source: {component: drydock}
firstTimestamp: %[4]s
lastTimestamp: %[4]s
count: 1
`, time.Now().UnixNano(), node, quoted(script), quoted(metav1.Now().UTC().Format(time.RFC3339)))
	require.NoError(t, c.lab.Apply(t.Context(), []byte(event)))

	p := c.ui("")
	at := tab(t)
	c.open(at, p, "/")
	for _, path := range []string{"/", "/?filter=" + "%3Cscript%3Ealert(6)%3C/script%3E", "/nodes/" + node, "/nodes/" + other, "/nodes/%3Cscript%3Ealert(7)%3C%2Fscript%3E", "/queue", "/report?since=7d", "/report?since=%3Cscript%3Ealert(8)%3C/script%3E"} {
		at.Forget()
		require.NoError(t, at.Open(t.Context(), c.roots[p]+path))
		await(t, at, "the page is whole", `document.readyState === "complete"`)
		// Something changes while the page is open. Updates over the stream must be as safe.
		c.patch(node, map[string]any{remediations.BreakGlassKey: script + time.Now().String()}, nil)
		c.record(other, remediations.PhaseVerifying, func(r *remediations.Record) { r.Policy, r.Note = policy, time.Now().String() })
		await(t, at, "the page goes on", `document.body.dataset.connection !== "lost"`)
		foreign, err := browser.Eval[int](t.Context(), at, `document.querySelectorAll("img, svg[onload], iframe, object, embed, script:not([src]), [onerror], [onload], a[href^=javascript]").length`)
		require.NoError(t, err)
		require.Zero(t, foreign, "%s: an element of the hostile text is on the page", path)
		moved, err := browser.Eval[bool](t.Context(), at, `/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069]/.test(document.documentElement.outerHTML)`)
		require.NoError(t, err)
		require.False(t, moved, "%s: a character that does not show is on the page", path)
		wide, err := browser.Eval[bool](t.Context(), at, "document.documentElement.scrollWidth > document.documentElement.clientWidth")
		require.NoError(t, err)
		require.False(t, wide, "%s: the page is wider than the window", path)
		require.Empty(t, at.Elsewhere(p.Origin), path)
		complaints := at.Complaints()
		if strings.Contains(path, "%3C") && !strings.Contains(path, "filter") { // a missing page answers 404, which the browser writes to the console
			complaints = withoutNotFound(complaints)
		}
		require.Empty(t, complaints, path)
	}
	require.NoError(t, at.Open(t.Context(), c.roots[p]+"/nodes/"+node))
	await(t, at, "the text is there as text", shows("<script>alert(1)</script>", "onerror=alert(2)"))
	count, err := browser.Eval[int](t.Context(), at, `new Set(document.body.innerText.match(/Alert\d+</g)).size`)
	require.NoError(t, err)
	require.Equal(t, 64, count, "all alerts are listed")
}

func withoutNotFound(complaints []string) (left []string) {
	for _, c := range complaints {
		if !strings.Contains(c, "status of 404") && !strings.Contains(c, "status of 400") {
			left = append(left, c)
		}
	}
	return left
}
