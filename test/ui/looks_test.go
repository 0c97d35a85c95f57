package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
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

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
	fleets "drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
)

// screenshots is the folder for pictures of the pages. `make screenshots` sets it. If it is empty,
// no picture is written.
var screenshots = os.Getenv("DRYDOCK_SCREENSHOTS")

// look is one way to show a page: its path, size and colors.
type look struct {
	// name is the file name of the picture. If it is empty, no picture is written.
	name, path, scheme string
	width, height      int64
}

// looks are all pages that show the incident.
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

// The pages are accessible: axe-core finds nothing serious on any of them, light or dark, wide or
// narrow. The control is a page with bad habits.
func TestThePagesAreAccessible(t *testing.T) {
	bad := tab(t)
	page := `<!doctype html><html><title>x</title><body style="background:#fff;color:#ddd"><img src="/x"><button></button><p>pale</p></body></html>`
	require.NoError(t, bad.Open(t.Context(), "data:text/html,"+url.PathEscape(page)))
	found, _ := findings(t, bad)
	require.Subset(t, rules(found), []string{"image-alt", "button-name", "color-contrast", "html-has-lang"})

	c := newCluster(t)
	rules := c.incident()
	c.seen(looks("node-9", "node-20"), "--config", rules.file)
}

func rules(found []finding) (out []string) {
	for _, f := range found {
		out = append(out, f.Rule)
	}
	return out
}

// seen opens each page, runs axe-core, and writes the picture.
func (c *cluster) seen(all []look, args ...string) {
	c.t.Helper()
	p := c.ui(lab.FromHome, append(args, "--alertmanager", c.lab.AlertmanagerURLs()[0])...)
	for _, l := range all {
		at := tab(c.t)
		require.NoError(c.t, at.Size(c.t.Context(), l.width, l.height))
		require.NoError(c.t, at.Scheme(c.t.Context(), l.scheme))
		c.open(at, p, "/")
		at.Forget()
		c.open(at, p, l.path)
		await(c.t, at, l.path+" is whole", `document.readyState === "complete" && ["ok", undefined].includes(document.body.dataset.connection)`) // the report is a plain file without a connection
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

// incident creates a fleet on a typical bad day. One node is under repair, and others wait for
// their turn, for a person or for a silence. Drydock's own rules decide it: the holds are the
// results of its guards, and the breakers are those that it would compute.
func (c *cluster) incident() ruleBook {
	c.t.Helper()
	at := time.Now().UTC().Truncate(time.Second)
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	const onFailingDisk = "node-10"
	policyOf := func(node string) string {
		if node == onFailingDisk {
			return "disk-failing"
		}
		return "node-not-ready"
	}
	rules := c.rules(`
limits: {concurrent: 2, concurrentPerZone: 1, concurrentPerPool: 2, unhealthy: 30%, startupGrace: 0s}
policies:
- {name: node-not-ready, match: ['remediation="node-not-ready"'], for: 0s, witness: none, plan: [{step: reboot, wait: 10m, attempts: 2}]}
- {name: disk-failing, match: ['remediation="disk-failing"'], for: 0s, witness: none, approval: true, plan: [{step: replace}]}
`)
	labels := func(node string) map[string]string {
		l := labelsOf(node)
		if node == onFailingDisk {
			l["alertname"] = "DiskFailing"
		}
		l["remediation"] = policyOf(node)
		return l
	}
	began := map[string]time.Duration{
		"node-9": 14 * time.Minute, "node-12": 9 * time.Minute, "node-11": 6 * time.Minute, onFailingDisk: 5 * time.Minute, "node-13": 26 * time.Hour,
	}
	for node, since := range began {
		a := remediations.Alert{V: 1, Name: labels(node)["alertname"], Policy: policyOf(node), Status: "firing", StartsAt: ago(since), ReceivedAt: ago(since - time.Second), Labels: labels(node), Fingerprint: remediations.Fingerprint(labels(node))}
		c.patch(node, map[string]any{a.Key(): a.Encode()}, nil)
		c.fire(labels(node), ago(since))
	}
	record := func(node string, phase remediations.Phase, change func(*remediations.Record)) *remediations.Record {
		return c.record(node, phase, func(r *remediations.Record) {
			r.Policy, r.Cause.Alert, r.Began, r.Since = policyOf(node), remediations.Fingerprint(labels(node)), ago(began[node]), ago(began[node])
			change(r)
		})
	}
	c.leads("drydock-7c9d8f6b5-x2kqp")
	repaired := record("node-9", remediations.PhaseVerifying, func(r *remediations.Record) {
		r.Since, r.Deadline = ago(3*time.Minute), at.Add(7*time.Minute)
		n := c.node("node-9")
		r.Intent = &remediations.Intent{ID: r.ID + "-0-1", At: ago(3*time.Minute + 2*time.Second), Outcome: remediations.CallAccepted, BootID: n.Status.NodeInfo.BootID, UID: string(n.UID), ProviderID: n.Spec.ProviderID, Zone: "zone-0", Pool: "workers"}
	})
	past := remediations.Entry{ID: "b7k2m9", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: ago(50 * time.Hour), Ended: ago(50*time.Hour - 4*time.Minute), Why: "a new boot ID, Ready for 30s, the lease fresh, the alert gone", Cause: "NodeNotReady"}
	c.patch("node-9", map[string]any{remediations.HistoryKey: remediations.EncodeHistory(nil, past)}, nil)
	record("node-13", remediations.PhaseExhausted, func(r *remediations.Record) {
		r.Since, r.Deadline = ago(25*time.Hour), ago(25*time.Hour)
		r.Step.Attempt, r.Done = 2, remediations.Attempts{{Name: "reboot", Number: 1}, {Name: "reboot", Number: 2}}
	})
	c.silence("ada@example.com", "swapping a disk", "node=node-11")
	c.patch("node-14", map[string]any{remediations.PauseKey: at.Add(2*time.Hour).Format(time.RFC3339) + " firmware update"}, nil)
	c.cordon("node-15", true)
	l := &ledger.Ledger{
		Slots:  []ledger.Slot{{Node: "node-9", Repair: repaired.ID, Attempt: repaired.Intent.ID, Zone: "zone-0", Pool: "workers", Since: repaired.Intent.At}},
		Status: ledger.Status{Mode: remediations.ModeEnforce, Stopped: map[string]string{"node-disk-pressure": "Civo says that the quota is reached"}, Holds: map[remediations.Reason]string{}},
	}
	unhealthy, nodes := rules.judge(l, func(node string) bool { return began[node] > 0 })
	require.Equal(c.t, []int{len(began), fleet}, []int{unhealthy, nodes})
	require.Empty(c.t, l.Status.Breakers, "a repair is under way, so no breaker is open")
	c.ledger(l)
	for node, reason := range map[string]remediations.Reason{
		"node-12": remediations.ReasonAtLimit, "node-11": remediations.ReasonSilenced, onFailingDisk: remediations.ReasonAwaitingApproval,
	} {
		pending := func(r *remediations.Record) {
			if r.Deadline = ago(began[node]).Add(24 * time.Hour); node == onFailingDisk {
				r.Step.Name = "replace"
			}
		}
		record(node, remediations.PhasePending, pending)
		held := rules.why(node)
		require.Equal(c.t, inspect.Held, held.State, node)
		require.Equal(c.t, reason, held.Hold.Reason, "%s: %s", node, held.Hold.Message)
		record(node, remediations.PhasePending, func(r *remediations.Record) {
			pending(r)
			r.Hold = &remediations.Hold{Reason: reason, Message: held.Hold.Message, Since: ago(began[node] - 2*time.Second)}
		})
		if reason == remediations.ReasonAtLimit {
			l.Status.Holds[reason] = held.Hold.Message
		}
	}
	c.ledger(l)
	require.Equal(c.t, inspect.UnderRepair, rules.why("node-9").State)
	require.Equal(c.t, inspect.Held, rules.why("node-13").State, "it ran out of steps")
	return rules
}

// ruleBook decides as Drydock would with one configuration.
type ruleBook struct {
	c      *cluster
	config *config.Config
	file   string
}

// rules reads a configuration that enforces, with the lab's Alertmanager, and with a Civo that is
// never called.
func (c *cluster) rules(more string) ruleBook {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "drydock.yaml")
	require.NoError(c.t, os.WriteFile(file, []byte(fmt.Sprintf(`
apiVersion: drydock.dev/v1alpha1
kind: Config
mode: enforce
alertmanager: {urls: [%q], selfTest: ""}
ledger: {namespace: %s}
receiver: {listen: "127.0.0.1:9095"}
providers: {civo: {clusterID: 3c1f7b1e-9f4a-4f52-a6cf-3ab1e2f10f7d, region: LON1, apiKeyFile: api-key}}
`, c.lab.AlertmanagerURLs()[0], lab.Namespace)+more), 0o600))
	read, _, err := config.Load(file, config.Options{SkipFiles: true})
	require.NoError(c.t, err)
	return ruleBook{c, read, file}
}

// judge writes the limits and the breakers for the present Nodes into the ledger. It returns how
// many nodes the cluster's breaker counts as unhealthy, and of how many.
func (r ruleBook) judge(l *ledger.Ledger, firing func(node string) bool) (unhealthy, nodes int) {
	r.c.t.Helper()
	list, err := r.c.lab.Client().CoreV1().Nodes().List(r.c.t.Context(), metav1.ListOptions{})
	require.NoError(r.c.t, err)
	all := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	f := fleets.New(r.config.Core, all, l, firing, time.Now())
	l.Status.Limits, l.Status.Breakers = r.config.Core.Limits.Words(), f.Breakers
	return f.Health()
}

// why returns the decision of Drydock's guards about the node.
func (r ruleBook) why(node string) (answer inspect.Why) {
	r.c.t.Helper()
	program, err := r.c.lab.PluginProgram(r.c.t.Context())
	require.NoError(r.c.t, err)
	cmd := exec.CommandContext(r.c.t.Context(), program, "why", node, "-o", "json", "--config", r.file, "--alertmanager", r.c.lab.AlertmanagerURLs()[0])
	cmd.Env = []string{"HOME=" + r.c.t.TempDir(), "KUBECONFIG=" + r.c.lab.AdminKubeconfig()}
	out, _ := cmd.Output() // an error is ignored, because the exit code is a part of the answer
	require.NoError(r.c.t, json.Unmarshal(out, &answer), "%s", out)
	return answer
}

// fire makes the alert fire in Alertmanager until the test ends.
func (c *cluster) fire(labels map[string]string, since time.Time) {
	c.t.Helper()
	send := func(ctx context.Context, ends time.Time) {
		body := quoted([]any{map[string]any{"labels": labels, "startsAt": since, "endsAt": ends}})
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.lab.AlertmanagerURLs()[0]+"/api/v2/alerts", strings.NewReader(body))
		require.NoError(c.t, err)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		require.NoError(c.t, err)
		require.NoError(c.t, res.Body.Close())
		require.Equal(c.t, http.StatusOK, res.StatusCode)
	}
	send(c.t.Context(), time.Now().Add(time.Hour))
	c.t.Cleanup(func() { send(context.WithoutCancel(c.t.Context()), time.Now()) })
}

// leads writes the Lease of a leading replica, until the test ends.
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

// This is only for `make screenshots`: fleets of one node and of thousands, and a storm that stops
// all repairs.
func TestScreenshotsOfOtherFleets(t *testing.T) {
	if screenshots == "" {
		t.Skip("make screenshots runs it: it fills an API server with 5,000 nodes")
	}
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, Alertmanagers: 1, Nodes: 1})
	c := settled(t, l)
	c.seen([]look{{"ui-one-node", "/", "light", 1280, 500}, {"ui-no-queue", "/queue", "light", 1280, 500}})

	const many, fourth = 5000, 4
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

	const ill = "node-12" // node-0 is the lab's own, and in no zone
	sick := 0
	for i := fourth * zones; i < many; i += fourth * zones { // all in one zone
		sick++
		require.NoError(t, l.SetCondition(t.Context(), fmt.Sprintf("node-%d", i), corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown"))
	}
	rules, now := c.rules("limits: {concurrent: 10, startupGrace: 0s}\n"), time.Now().UTC().Truncate(time.Second)
	a := remediations.Alert{V: 1, Name: "NodeNotReady", Policy: "node-not-ready", Status: "firing", StartsAt: now.Add(-time.Hour), ReceivedAt: now.Add(-time.Hour), Labels: labelsOf(ill), Fingerprint: remediations.Fingerprint(labelsOf(ill))}
	c.patch(ill, map[string]any{a.Key(): a.Encode()}, nil)
	c.fire(labelsOf(ill), a.StartsAt)
	c.fire(map[string]string{"alertname": "Watchdog"}, a.StartsAt)
	storm := &ledger.Ledger{Status: ledger.Status{Mode: remediations.ModeEnforce, Holds: map[remediations.Reason]string{}}}
	unhealthy, nodes := rules.judge(storm, func(string) bool { return false })
	require.Equal(t, []int{sick, many}, []int{unhealthy, nodes})
	open := storm.Status.Breakers["zone/zone-0"]
	require.Len(t, storm.Status.Breakers, 1)
	require.Equal(t, ledger.Breaker{State: ledger.BreakerOpen, Since: open.Since, Quiet: open.Quiet, Seen: open.Seen, Unhealthy: sick, Nodes: (many - 1) / zones}, open)
	c.ledger(storm)
	held := rules.why(ill)
	require.Equal(t, remediations.ReasonFleetUnhealthy, held.Hold.Reason, held.Hold.Message)
	storm.Status.Holds[held.Hold.Reason] = held.Hold.Message
	c.ledger(storm)
	await(t, at, "the numbers that the rules counted", inForce(fmt.Sprintf("zone/zone-0 %d of %d unhealthy, limit 20%%, breaker open", sick, open.Nodes)))
	c.seen([]look{{"ui-storm", "/", "light", 1280, 800}, {"ui-storm-dark", "/", "dark", 1280, 800}})
}
