package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// Alertmanager needs no credentials: any client of its API can create any alert, with any start
// time. So Drydock acts only if the node itself shows the fault and Alertmanager routes the alert
// to it.
func TestAnAlertThatAnybodyPostsRepairsNoHealthyNode(t *testing.T) {
	y := newYard(t)
	const healthy, elsewhere = "node-42", "node-43"
	p := policy(map[string]any{"name": "posted", "match": []string{`remediation="posted"`}, "witness": []any{map[string]any{"ready": false}}})
	d := y.run(lab.DrydockOptions{Config: several(config(p))})
	y.configure(d, map[string]any{"route": map[string]any{"routes": []any{
		map[string]any{"matchers": []string{`alertname="Watchdog"`}, "receiver": "nobody"},
		map[string]any{"matchers": []string{`node="` + elsewhere + `"`}, "receiver": "nobody"},
	}}})
	endHealthy, endElsewhere := y.posted(healthy), y.posted(elsewhere)
	r := y.held(healthy, "NotWitnessed")
	require.Zero(t, y.reboots(healthy))
	y.awaitEvent(healthy, "RepairHeld", "NotWitnessed: ")

	// The controls: the same alerts about two nodes that really are not Ready. One of the alerts is
	// not routed to Drydock.
	y.fail(elsewhere)
	y.fail(healthy)
	y.record(healthy, "the reboot verified", verifying)
	endHealthy()
	require.Equal(t, r.ID, y.recovers(healthy, 1).ID)
	require.Zero(t, y.reboots(elsewhere))
	require.Nil(t, remediations.ReadJournal(y.node(elsewhere)).Record)

	y.configure(d, nil)
	y.record(elsewhere, "the reboot verified", verifying)
	endElsewhere()
	y.recovers(elsewhere, 1)
}

// posted posts an alert about the node to an Alertmanager, with a start time that is long enough
// ago for any policy. It returns a function that ends the alert.
func (y *yard) posted(node string) (end func()) {
	y.t.Helper()
	add := func(until time.Time) {
		y.t.Helper()
		out, err := y.tryAmtool(0, "alert", "add", "Posted", "node="+node, "remediation=posted",
			"--start="+y.began.Add(-24*time.Hour).Format(time.RFC3339), "--end="+until.Format(time.RFC3339))
		if err != nil {
			y.t.Errorf("posting an alert: %v: %s", err, out)
		}
	}
	end = func() { add(time.Now().Add(-time.Minute)) }
	add(time.Now().Add(time.Hour))
	y.t.Cleanup(end)
	return end
}

// page is the metrics page of a person's program. The lab's Prometheus scrapes all pages from its
// start.
type page struct {
	text atomic.Pointer[string]
}

// The two pages have different jobs: a tenant's own job, and the job that the shipped rules trust.
var tenant, trusted = &page{}, &page{}

// scraped starts the pages and returns the jobs that scrape them, with honor_labels at its default.
func scraped() []map[string]any {
	var jobs []map[string]any
	for name, p := range map[string]http.Handler{"tenant": tenant, "kube-state-metrics": trusted, "drydock": controller} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		go func() { _ = http.Serve(listener, p) }() // ends with the test binary
		jobs = append(jobs, map[string]any{
			"job_name":        "page-" + name,
			"static_configs":  []any{map[string]any{"targets": []string{listener.Addr().String()}}},
			"relabel_configs": []any{map[string]any{"target_label": "job", "replacement": name}},
		})
	}
	return jobs
}

func (p *page) say(text string) { p.text.Store(&text) }

func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if text := p.text.Load(); text != nil {
		_, _ = io.WriteString(w, *text)
	}
}

// forged are metrics about a node's kube-proxy and about its place in the mesh. kube-state-metrics
// and Drydock's agents would report the same for an unhealthy node.
func forged(node string) string {
	text := fmt.Sprintf(`kube_pod_info{namespace="kube-system",pod="kube-proxy-forged",node=%q,created_by_kind="DaemonSet",created_by_name="kube-proxy"} 1
kube_pod_status_ready{namespace="kube-system",pod="kube-proxy-forged",condition="true"} 0
`, node)
	probe := func(from, to string, success int) {
		for _, proto := range []string{"tcp", "udp"} {
			text += fmt.Sprintf("drydock_mesh_probe_success{path=\"local\",proto=%q,src_node=%q,dst_node=%q,src_location=\"forged\",dst_location=\"forged\",src_role=\"member\",dst_role=\"member\"} %d\n", proto, from, to, success)
		}
	}
	for _, sibling := range []string{"node-0", "node-1"} {
		probe(sibling, node, 0)
		probe(node, sibling, 0)
	}
	probe("node-0", "node-1", 1)
	probe("node-1", "node-0", 1)
	return text
}

// sentinel is an alert that fires when Prometheus has had the tenant's metrics for as long as the
// shipped rules wait.
const sentinel = `groups:
- name: sentinel
  rules:
  - alert: Sentinel
    expr: |
      max by (node) (kube_pod_info{job="tenant"}) and on (node)
      max by (node) (label_replace(drydock_mesh_probe_success{job="tenant"}, "node", "$1", "dst_node", "(.+)"))
    for: 5s
`

// A tenant can export any metrics, and Prometheus scrapes them. The shipped rules use only metrics
// of trusted jobs. If a trusted job reports something false, the node itself must show the fault.
func TestForgedMetricsRepairNoHealthyNode(t *testing.T) {
	y := newYard(t)
	const node = "node-44"
	t.Cleanup(func() {
		tenant.say("")
		trusted.say("")
	})
	for _, rule := range []string{"KubeProxyNotReady", "MeshForwardingFault"} {
		require.NoError(t, y.lab.LoadRuleFile(t.Context(), "../../rules/"+rule+".yaml", lab.RuleTimes{For: time.Second}))
	}
	require.NoError(t, y.lab.LoadRules(t.Context(), "sentinel", []byte(sentinel)))
	var policies []any
	for _, name := range []string{"kube-proxy-not-ready", "mesh-forwarding-fault"} {
		policies = append(policies, policy(map[string]any{
			"name": name, "match": []string{fmt.Sprintf("remediation=%q", name)}, "witness": []any{map[string]any{"ready": false}},
		}))
	}
	y.run(lab.DrydockOptions{Config: several(map[string]any{"policies": policies})})

	tenant.say(forged(node))
	require.Eventually(t, func() bool { return slices.Contains(y.alertNames(node), "Sentinel") }, lab.Patience, 100*time.Millisecond, "the sentinel fires")
	require.Equal(t, []string{"Sentinel"}, y.alertNames(node))
	require.Nil(t, remediations.ReadJournal(y.node(node)).Record)

	// The controls: the same metrics from the trusted job, and then a node that really is not
	// Ready.
	trusted.say(forged(node))
	r := y.held(node, "NotWitnessed")
	require.Zero(t, y.reboots(node))
	y.fail(node)
	y.record(node, "the reboot verified", verifying)
	trusted.say("")
	require.Equal(t, r.ID, y.recovers(node, 1).ID)
}

// alertNames returns the names of the alerts that an Alertmanager has about the node, each name
// once.
func (y *yard) alertNames(node string) []string {
	y.t.Helper()
	var alerts []struct {
		Labels map[string]string `json:"labels"`
	}
	y.get(0, "alerts?filter=node%3D%22"+node+"%22", &alerts)
	var names []string
	for _, a := range alerts {
		names = append(names, a.Labels["alertname"])
	}
	slices.Sort(names)
	return slices.Compact(names)
}
