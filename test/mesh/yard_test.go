// Package mesh tests the real programs on a real network in the lab. Drydock's agents in every
// node's pod probe each other over an overlay whose leaders relay between locations. Prometheus
// scrapes the agents and evaluates the rules, Alertmanager posts, and Drydock moves the leadership.
// A simulation of Kilo's agents sets the routes. Tests assert the state of the world: whether
// packets pass, who leads, what is on the Nodes.
package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/mesh"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// yard is what one test has: a healthy mesh with the leaders west-1, east-1 and cloud-1, and
// Drydock with the test's configuration.
type yard struct {
	*place
	t     *testing.T
	kilo  *mesh.Kilo
	began time.Time
}

// yard resets the place: Kilo runs, there are no faults, and nothing is left of earlier tests.
func (p *place) yard(t *testing.T, checkIn, interval time.Duration) *yard {
	t.Helper()
	y := &yard{place: p, t: t, began: time.Now()}
	y.begin(checkIn)
	require.NoError(t, p.settle(context.WithoutCancel(t.Context()), interval))
	y.known()
	return y
}

// begin starts Kilo on a network without faults.
func (y *yard) begin(checkIn time.Duration) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	require.NoError(y.t, y.network.HealAll())
	y.network.ScrapeFrom("")
	var err error
	y.kilo, err = y.network.StartKilo(ctx, y.lab, checkIn)
	require.NoError(y.t, err)
	y.t.Cleanup(y.kilo.Stop)
	require.NoError(y.t, y.kilo.Lead(ctx, "west-1"))
}

// known waits until no alert fires, and every agent has good results about its siblings and about
// the leaders of the other locations. It also removes what earlier tests left on the nodes, in the
// ledger, and in Prometheus. Otherwise Prometheus would know for minutes who was silent under an
// earlier leader.
func (y *yard) known() {
	y.t.Helper()
	y.await("the alerts of earlier tests end", func() bool { return len(y.firing()) == 0 })
	y.await("no probe fails", func() bool { return y.query(`count(drydock_mesh_probe_success == 0)`) == 0 })
	y.post(y.lab.PrometheusURL() + "/api/v1/admin/tsdb/delete_series?match[]=drydock_mesh_probe_success")
	y.probed()
	y.await("the leaders alone have an address in the mesh", func() bool {
		var addressed []string
		for _, n := range y.nodes() {
			if n.Annotations[election.WireGuardIPKey] != "" {
				addressed = append(addressed, n.Name)
			}
		}
		return slices.Equal(addressed, []string{"cloud-1", "east-1", "west-1"})
	})
	for _, n := range y.nodes() {
		gone := map[string]any{}
		for k := range n.Annotations {
			if remediations.Relevant(k) {
				gone[k] = nil
			}
		}
		y.patch(n.Name, map[string]any{
			"metadata": map[string]any{"annotations": gone, "labels": map[string]any{remediations.PhaseLabel: nil}},
			"spec":     map[string]any{"unschedulable": nil},
		})
	}
	err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Delete(y.t.Context(), "drydock-ledger", metav1.DeleteOptions{})
	require.NoError(y.t, client.IgnoreNotFound(err))
}

// probed waits until every agent has good results about its siblings, and about the leaders of
// other locations.
func (y *yard) probed() {
	y.t.Helper()
	y.await("probes between siblings, and to the leaders of other locations, pass", func() bool {
		return y.query(`count(min by (src_node, dst_node) (drydock_mesh_probe_success{path="local"}) == 1)`) == y.siblings() &&
			y.query(`count(min by (src_node, dst_node) (drydock_mesh_probe_success{path="cross",dst_role="leader"}) == 1)`) == float64(2*len(y.network.Nodes()))
	})
}

// siblings returns the paths between nodes of one location.
func (y *yard) siblings() float64 {
	ways := 0
	for _, a := range y.network.Nodes() {
		for _, b := range y.network.Nodes() {
			if a != b && a.Location == b.Location {
				ways++
			}
		}
	}
	return float64(ways)
}

// quick returns the shipped policy with short times, and further policies. Its wait is long,
// because a busy machine proves a successful move late.
func quick(further ...map[string]any) map[string]any {
	return quickly([]any{map[string]any{"step": "promote-leader", "wait": "5m", "attempts": 2}}, further...)
}

// quickly does the same as quick, with another plan.
func quickly(plan []any, further ...map[string]any) map[string]any {
	p := map[string]any{
		"name": "mesh-leader-degraded", "match": []string{`remediation="mesh-leader-degraded"`}, "target": map[string]any{"location": "location"},
		"for": "0s", "proofFor": "5s", "cooldown": "0s", "onExhausted": "none", "plan": plan,
	}
	policies := []any{p}
	for _, f := range further {
		policies = append(policies, f)
	}
	return map[string]any{"policies": policies}
}

// run starts Drydock and sends Alertmanager's posts to it. Drydock ends with the test.
func (y *yard) run(config map[string]any, civo *lab.Civo) *lab.Drydock {
	y.t.Helper()
	all := map[string]any{"providers": y.providers()}
	maps.Copy(all, config)
	d, err := y.lab.StartDrydock(y.t.Context(), y.token, lab.DrydockOptions{Config: all, Civo: civo, Admission: y.admission})
	require.NoError(y.t, err)
	y.t.Cleanup(func() { y.stop(d) })
	require.NoError(y.t, y.lab.SetWebhook(y.t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: y.token}))
	return d
}

// stop ends Drydock with SIGTERM, so that the next one need not wait for its Lease.
func (y *yard) stop(d *lab.Drydock) {
	y.t.Helper()
	select {
	case <-d.Done():
	default:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(y.t.Context()), lab.Patience)
		defer cancel()
		require.NoError(y.t, d.Stop(ctx))
	}
}

func (y *yard) await(what string, wanted func() bool) {
	y.t.Helper()
	require.Eventually(y.t, wanted, lab.Patience, 200*time.Millisecond, what)
}

func (y *yard) nodes() []corev1.Node {
	y.t.Helper()
	list, err := y.lab.Client().CoreV1().Nodes().List(y.t.Context(), metav1.ListOptions{})
	require.NoError(y.t, err)
	return list.Items
}

func (y *yard) node(name string) *corev1.Node {
	y.t.Helper()
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
	require.NoError(y.t, err)
	return n
}

func (y *yard) patch(name string, patch map[string]any) {
	y.t.Helper()
	require.NoError(y.t, y.try(name, patch))
}

// try sends a patch that the API server may refuse.
func (y *yard) try(name string, patch map[string]any, dryRun ...string) error {
	y.t.Helper()
	data, err := json.Marshal(patch)
	require.NoError(y.t, err)
	_, err = y.lab.Client().CoreV1().Nodes().Patch(y.t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{DryRun: dryRun})
	return err
}

// annotated returns the nodes of the location that have the leader's key.
func (y *yard) annotated(location string) []string {
	var out []string
	for _, n := range y.nodes() {
		if _, ok := n.Annotations[election.LeaderKey]; ok && n.Labels[corev1.LabelTopologyRegion] == location {
			out = append(out, n.Name)
		}
	}
	return out
}

// get reads JSON from an address.
func (y *yard) get(url string, into any) {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, url, nil)
	require.NoError(y.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	require.NoError(y.t, json.NewDecoder(res.Body).Decode(into))
}

// post sends an empty POST to an address, which must accept it.
func (y *yard) post(address string) {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodPost, address, nil)
	require.NoError(y.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(y.t, http.StatusNoContent, res.StatusCode)
}

// firing returns the alerts about a location or a node that Alertmanager has, as "name/about".
func (y *yard) firing() []string {
	y.t.Helper()
	var alerts []struct{ Labels map[string]string }
	y.get(y.lab.AlertmanagerURLs()[0]+"/api/v2/alerts", &alerts)
	var out []string
	for _, a := range alerts {
		if about := a.Labels["location"] + "/" + a.Labels["node"]; about != "/" {
			out = append(out, a.Labels["alertname"]+"/"+about)
		}
	}
	slices.Sort(out)
	return out
}

// fired reports whether the location's alert has fired since the test began. It may have ended
// already, because Drydock is quick.
func (y *yard) fired(location string) bool {
	y.t.Helper()
	since := int(time.Since(y.began).Seconds()) + 1
	return y.query(fmt.Sprintf(`count(last_over_time(ALERTS{alertname="MeshLeaderDegraded",alertstate="firing",location=%q}[%ds]))`, location, since)) > 0
}

// query returns the value of a PromQL expression. It returns 0 if the result is empty.
func (y *yard) query(expression string) float64 {
	y.t.Helper()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	y.get(y.lab.PrometheusURL()+"/api/v1/query?query="+url.QueryEscape(expression), &answer)
	if len(answer.Data.Result) == 0 {
		return 0
	}
	var value float64
	_, err := fmt.Sscan(fmt.Sprint(answer.Data.Result[0].Value[1]), &value)
	require.NoError(y.t, err)
	return value
}

// entries returns the ended repairs of leaders on a node, newest first.
func (y *yard) entries(node string) []remediations.Entry {
	var out []remediations.Entry
	for _, e := range remediations.DecodeHistory(y.node(node).Annotations[remediations.HistoryKey]) {
		if e.Location != "" {
			out = append(out, e)
		}
	}
	return out
}

// ended waits for the end of a leader's repair on the node that led when the repair began.
func (y *yard) ended(node string) remediations.Entry {
	y.t.Helper()
	y.await("a repair of the leader "+node+" ends", func() bool { return len(y.entries(node)) > 0 })
	entries := y.entries(node)
	require.Len(y.t, entries, 1)
	return entries[0]
}

// flows waits until packets pass between two pods. It returns how long after the fault the first
// packet passed.
func (y *yard) flows(from, to string, fault time.Time) time.Duration {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	first, err := y.network.Flows(ctx, from, to)
	require.NoError(y.t, err, "Kilo's leaders: %v; alerts: %v; Events: %v", y.kilo.Leads(), y.firing(), y.events())
	return first.Sub(fault)
}

// moved waits until Kilo's routes of the location use the node as leader.
func (y *yard) moved(location, node string) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	require.NoError(y.t, y.kilo.AwaitLeader(ctx, location, node), "alerts: %v; Events: %v", y.firing(), y.events())
}

// unmoved asserts that the location's leader has not changed since the test began, and that no
// repair of it was or is under way.
func (y *yard) unmoved(location, leader string) {
	y.t.Helper()
	require.Nil(y.t, y.held(location, leader))
}

// held returns the record of a repair of the location if no repair has moved anything since the
// test began. It returns nil if there is no record.
func (y *yard) held(location, leader string) (held *remediations.Record) {
	y.t.Helper()
	for _, l := range y.kilo.Leads() {
		if l.Location == location {
			require.Equal(y.t, leader, l.Node, "%v", y.kilo.Leads())
		}
	}
	for _, n := range y.nodes() {
		if n.Labels[corev1.LabelTopologyRegion] == location {
			require.Empty(y.t, y.entries(n.Name))
			if r := remediations.ReadJournal(&n).Records[remediations.LocationKey]; r != nil {
				require.Equal(y.t, remediations.PhasePending, r.Phase)
				require.Empty(y.t, r.Moves)
				held = r
			}
		}
	}
	return held
}

// allUnmoved asserts that for all three locations.
func (y *yard) allUnmoved() {
	y.t.Helper()
	for _, l := range []string{"west", "east", "cloud"} {
		y.unmoved(l, l+"-1")
	}
}

// patience waits for longer than it takes to find out that a leader is faulty and to move the
// leadership.
func (y *yard) patience() {
	y.t.Helper()
	before := time.Now()
	y.await("three rules' patience passes", func() bool { return time.Since(before) > 3*quickFor })
}

// allWell waits until packets pass between all pods, and the agents report that.
func (y *yard) allWell() {
	y.t.Helper()
	y.await("all pods reach each other", func() bool { return len(y.network.Mute(y.t.Context())) == 0 })
	y.await("all agents are scraped", func() bool { return y.query(`sum(up{job="drydock-agent"})`) == 8 })
	y.await("no probe fails", func() bool { return y.query(`count(drydock_mesh_probe_success == 0)`) == 0 })
	y.probed()
}

// powerOff switches the power of nodes off: agents, kubelet, Kilo and the wire. on switches it on
// again, which happens at the end of the test at the latest.
func (y *yard) powerOff(nodes ...string) (on func()) {
	y.t.Helper()
	ctx := context.WithoutCancel(y.t.Context())
	for _, n := range nodes {
		require.NoError(y.t, y.network.Cut(n))
		y.lab.Break(n)
		y.kilo.Silence(n)
	}
	y.agents.Kill(nodes...)
	once := sync.OnceFunc(func() {
		for _, n := range nodes {
			require.NoError(y.t, y.network.Join(n))
			require.NoError(y.t, y.lab.Heal(ctx, n, ""))
			y.kilo.Resume(n)
		}
		require.NoError(y.t, y.agents.Start(ctx, nodes...))
	})
	y.t.Cleanup(once)
	return once
}

// events returns the notes of Drydock's Events about Nodes in this test.
func (y *yard) events() []string {
	y.t.Helper()
	list, err := y.lab.Client().EventsV1().Events("").List(y.t.Context(), metav1.ListOptions{FieldSelector: "regarding.kind=Node"})
	require.NoError(y.t, err)
	var out []string
	for _, e := range list.Items {
		if !e.EventTime.Time.Before(y.began) {
			out = append(out, fmt.Sprintf("%s %s: %s", e.Regarding.Name, e.Reason, e.Note))
		}
	}
	return out
}
