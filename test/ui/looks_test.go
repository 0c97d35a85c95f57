package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// screenshots is the folder that takes pictures of the pages, as `make screenshots` sets it; empty:
// no picture is kept.
var screenshots = os.Getenv("DRYDOCK_SCREENSHOTS")

// look is one way to look at a page.
type look struct {
	// name is the picture's; empty: no picture is kept.
	name, path, scheme string
	width, height      int64
}

// looks are at each page of the incident.
func looks(node, calm string) []look {
	return []look{
		{"ui-fleet", "/", "light", 1280, 1000},
		{"ui-fleet-dark", "/", "dark", 1280, 1000},
		{"ui-node", "/nodes/" + node, "light", 1280, 1000},
		{"ui-node-dark", "/nodes/" + node, "dark", 1280, 1000},
		{"ui-queue", "/queue", "light", 1280, 700},
		{"", "/queue", "dark", 1280, 700},
		{"ui-report", "/report?since=7d", "light", 1280, 1000},
		{"", "/report?since=7d", "dark", 1280, 1000},
		{"ui-narrow", "/", "light", 360, 780},
		{"ui-node-narrow", "/nodes/" + node, "light", 360, 1200},
		{"", "/queue", "dark", 360, 780},
		{"", "/nodes/" + calm, "light", 1280, 800},
	}
}

// The pages are accessible: axe-core finds nothing serious on any, light or dark, wide or narrow.
// Its control is a page of bad habits.
func TestThePagesAreAccessible(t *testing.T) {
	bad := tab(t)
	page := `<!doctype html><html><title>x</title><body style="background:#fff;color:#ddd"><img src="/x"><button></button><p>pale</p></body></html>`
	require.NoError(t, bad.Open(t.Context(), "data:text/html,"+url.PathEscape(page)))
	found, _ := findings(t, bad)
	require.Subset(t, rules(found), []string{"image-alt", "button-name", "color-contrast", "html-has-lang"})

	c := newCluster(t)
	c.incident()
	c.seen(looks("node-9", "node-20"))
}

func rules(found []finding) (out []string) {
	for _, f := range found {
		out = append(out, f.Rule)
	}
	return out
}

// seen looks at each page, asks axe-core, and keeps the picture.
func (c *cluster) seen(all []look) {
	c.t.Helper()
	p := c.ui("", "--alertmanager", c.lab.AlertmanagerURLs()[0])
	for _, l := range all {
		at := tab(c.t)
		require.NoError(c.t, at.Size(c.t.Context(), l.width, l.height))
		require.NoError(c.t, at.Scheme(c.t.Context(), l.scheme))
		c.open(at, p, "/")
		at.Forget()
		c.open(at, p, l.path)
		await(c.t, at, l.path+" is whole", `document.readyState === "complete" && ["ok", undefined].includes(document.body.dataset.connection)`) // the report is a file, and has none
		require.Empty(c.t, at.Complaints(), "%s, %s, %d px", l.path, l.scheme, l.width)
		wide, err := browser.Eval[bool](c.t.Context(), at, "document.documentElement.scrollWidth > document.documentElement.clientWidth")
		require.NoError(c.t, err)
		require.False(c.t, wide, "%s is wider than its window of %d px", l.path, l.width)
		bad, right := findings(c.t, at)
		require.Empty(c.t, bad, "%s, %s, %d px", l.path, l.scheme, l.width)
		require.Greater(c.t, right, 20, "axe-core looked at %s", l.path)
		if screenshots != "" && l.name != "" {
			picture, err := at.Screenshot(c.t.Context())
			require.NoError(c.t, err)
			require.NoError(c.t, os.WriteFile(filepath.Join(screenshots, l.name+".png"), small(c.t, picture), 0o644))
		}
		at.Close()
	}
}

// incident is a fleet on an ordinary bad day: one node under repair, others waiting for their turn,
// for a person or for a silence.
func (c *cluster) incident() {
	c.t.Helper()
	at := time.Now().UTC().Truncate(time.Second)
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	firing := func(node string, since time.Duration) {
		labels := labelsOf(node)
		a := remediations.Alert{V: 1, Name: labels["alertname"], Policy: "node-not-ready", Status: "firing", StartsAt: ago(since), ReceivedAt: ago(since - time.Second), Labels: labels, Fingerprint: remediations.Fingerprint(labels)}
		c.patch(node, map[string]any{a.Key(): a.Encode()}, nil)
		c.fire(labels, ago(since))
	}
	c.leads("drydock-7c9d8f6b5-x2kqp")
	held := func(node string, since time.Duration, reason remediations.Reason, message string) {
		firing(node, since)
		c.record(node, remediations.PhasePending, func(r *remediations.Record) {
			r.Began, r.Since, r.Deadline = ago(since), ago(since), ago(since).Add(24*time.Hour)
			r.Hold = &remediations.Hold{Reason: reason, Message: message, Since: ago(since - 2*time.Second)}
		})
	}
	firing("node-9", 14*time.Minute)
	ill := c.record("node-9", remediations.PhaseVerifying, func(r *remediations.Record) {
		r.Began, r.Since, r.Deadline = ago(14*time.Minute), ago(3*time.Minute), at.Add(7*time.Minute)
		r.Step = remediations.StepRef{Index: 1, Name: "reboot", Attempt: 1}
		r.Done = remediations.Attempts{{Name: "restart-kubelet", Number: 1}, {Name: "reboot", Number: 1}}
		r.Intent = &remediations.Intent{ID: r.ID + "-1-1", At: ago(3*time.Minute + 2*time.Second), Outcome: remediations.CallAccepted, BootID: c.node("node-9").Status.NodeInfo.BootID, UID: string(c.node("node-9").UID), ProviderID: c.node("node-9").Spec.ProviderID}
	})
	past := remediations.Entry{ID: "b7k2m9", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: ago(50 * time.Hour), Ended: ago(50*time.Hour - 4*time.Minute), Why: "a new boot ID, Ready for 30s, the lease fresh, the alert gone", Cause: "NodeNotReady"}
	c.patch("node-9", map[string]any{remediations.HistoryKey: remediations.EncodeHistory(nil, past)}, nil)
	held("node-10", 9*time.Minute, remediations.ReasonAtLimit, "repairs under way in the cluster: 1 of at most 1 (node-9); limits.concurrent is 1")
	silence := c.silence("ada@example.com", "swapping a disk", "node=node-11")
	held("node-11", 6*time.Minute, remediations.ReasonSilenced, "covered by silence "+silence.id+" of ada@example.com (swapping a disk) until "+at.Add(20*time.Minute).Format(time.RFC3339))
	held("node-12", 5*time.Minute, remediations.ReasonAwaitingApproval, "the policy asks a person first: kubectl drydock approve node-12")
	firing("node-13", 26*time.Hour)
	c.record("node-13", remediations.PhaseExhausted, func(r *remediations.Record) {
		r.Began, r.Since, r.Deadline = ago(26*time.Hour), ago(25*time.Hour), ago(25*time.Hour)
		r.Step = remediations.StepRef{Index: 0, Name: "reboot", Attempt: 2}
		r.Done = remediations.Attempts{{Name: "reboot", Number: 1}, {Name: "reboot", Number: 2}}
	})
	c.patch("node-14", map[string]any{remediations.PauseKey: at.Add(2*time.Hour).Format(time.RFC3339) + " firmware update"}, nil)
	c.cordon("node-15", true)
	c.ledger(&ledger.Ledger{
		Slots: []ledger.Slot{{Node: "node-9", Repair: ill.ID, Attempt: ill.Intent.ID, Zone: "zone-0", Pool: "workers", Since: ill.Intent.At}},
		Status: ledger.Status{
			Mode: remediations.ModeEnforce, Limits: map[string]string{"concurrent": "1", "concurrentPerZone": "1", "concurrentPerPool": "1", "unhealthy": "20%"},
			Holds:   map[remediations.Reason]string{remediations.ReasonAtLimit: "repairs under way in the cluster: 1 of at most 1 (node-9); limits.concurrent is 1"},
			Stopped: map[string]string{"node-disk-pressure": "Civo says that the quota is reached"},
		},
	})
}

// fire makes the alert fire at the Alertmanager, for as long as the test takes.
func (c *cluster) fire(labels map[string]string, since time.Time) {
	c.t.Helper()
	tell := func(ctx context.Context, ends time.Time) {
		body := quoted([]any{map[string]any{"labels": labels, "startsAt": since, "endsAt": ends}})
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.lab.AlertmanagerURLs()[0]+"/api/v2/alerts", strings.NewReader(body))
		require.NoError(c.t, err)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		require.NoError(c.t, err)
		require.NoError(c.t, res.Body.Close())
		require.Equal(c.t, http.StatusOK, res.StatusCode)
	}
	tell(c.t.Context(), time.Now().Add(time.Hour))
	c.t.Cleanup(func() { tell(context.WithoutCancel(c.t.Context()), time.Now()) })
}

// leads writes the Lease of a replica that leads, until the test ends.
func (c *cluster) leads(replica string) {
	c.t.Helper()
	leases := c.lab.Client().CoordinationV1().Leases(lab.Namespace)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "drydock"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &replica, LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro())},
	}
	_, err := leases.Create(c.t.Context(), lease, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = leases.Delete(context.WithoutCancel(c.t.Context()), lease.Name, metav1.DeleteOptions{}) })
}

// What only `make screenshots` needs: fleets of one node and of thousands, and a storm that stops
// all repairs.
func TestScreenshotsOfOtherFleets(t *testing.T) {
	if screenshots == "" {
		t.Skip("make screenshots runs it: it fills an API server with 5,000 nodes")
	}
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, Alertmanagers: 1, Nodes: 1})
	c := settled(t, l)
	c.seen([]look{{"ui-one-node", "/", "light", 1280, 500}, {"ui-no-queue", "/queue", "light", 1280, 500}})

	const many, eighth = 5000, 8
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(32)
	for i := 1; i < many; i++ {
		g.Go(func() error {
			return l.AddNode(ctx, lab.NodeSpec{Name: fmt.Sprintf("node-%d", i), Zone: fmt.Sprintf("zone-%d", i%zones), Pool: fmt.Sprintf("pool-%d", i%2)})
		})
	}
	require.NoError(t, g.Wait())
	c.seen([]look{{"ui-5000-nodes", "/", "light", 1280, 800}})
	at := tab(t)
	require.NoError(t, at.Size(t.Context(), 1920, 1080))
	c.open(at, c.ui(""), "/")
	await(t, at, "all tiles are there", fmt.Sprintf(`document.querySelectorAll("a[data-node]").length === %d`, many))
	await(t, at, "all of them are on one screen", `document.documentElement.scrollHeight <= innerHeight`)

	for i := 0; i < many; i += eighth * zones { // all in one zone
		require.NoError(t, l.SetCondition(t.Context(), fmt.Sprintf("node-%d", i), corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown"))
	}
	now := time.Now().UTC().Truncate(time.Second)
	c.ledger(&ledger.Ledger{Status: ledger.Status{
		Mode: remediations.ModeEnforce, Limits: map[string]string{"concurrent": "10", "unhealthy": "20%"},
		Breakers: map[string]ledger.Breaker{"zone/zone-0": {
			State: ledger.BreakerOpen, Since: now.Add(-4 * time.Minute), Unhealthy: 340, Nodes: 1667, Quiet: now.Add(-time.Minute),
		}},
		Holds: map[remediations.Reason]string{remediations.ReasonFleetUnhealthy: "zone zone-0: 340 of 1667 nodes are unhealthy"},
	}})
	c.seen([]look{{"ui-storm", "/", "light", 1280, 800}, {"ui-storm-dark", "/", "dark", 1280, 800}})
}
