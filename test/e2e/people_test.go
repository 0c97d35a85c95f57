package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
)

// author is the author of the tests' silences.
const author = "ada@example.com"

// amtool runs the real amtool with one of the Alertmanagers.
func (y *yard) amtool(replica int, args ...string) string {
	y.t.Helper()
	out, err := y.tryAmtool(replica, args...)
	require.NoError(y.t, err, out)
	return strings.TrimSpace(out)
}

func (y *yard) tryAmtool(replica int, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(y.t.Context()), lab.Patience)
	defer cancel()
	paths, err := programs.Build(ctx, os.Stderr, "amtool")
	if err != nil {
		return "", err
	}
	args = append([]string{"--alertmanager.url=" + y.lab.AlertmanagerURLs()[replica]}, args...)
	out, err := exec.CommandContext(ctx, paths["amtool"], args...).CombinedOutput()
	return string(out), err
}

// silence is a silence in one Alertmanager.
type silence struct {
	y       *yard
	replica int
	id      string
}

// silence creates a silence for 20 minutes. It is removed at the end of the test.
func (y *yard) silence(replica int, by, comment string, matchers ...string) silence {
	y.t.Helper()
	args := append([]string{"silence", "add", "--author=" + by, "--comment=" + comment, "--duration=20m"}, matchers...)
	s := silence{y, replica, y.amtool(replica, args...)}
	y.t.Cleanup(func() { _, _ = y.tryAmtool(replica, "silence", "expire", s.id) }) // the error is that it has ended
	return s
}

// silenceBoth creates a silence in each of the Alertmanagers, which do not know each other. It
// returns a function that ends both.
func (y *yard) silenceBoth(comment string, matchers ...string) (expire func()) {
	y.t.Helper()
	a, b := y.silence(0, author, comment, matchers...), y.silence(1, author, comment, matchers...)
	return func() {
		y.t.Helper()
		a.expire()
		b.expire()
	}
}

func (s silence) expire() {
	s.y.t.Helper()
	s.y.amtool(s.replica, "silence", "expire", s.id)
}

// standing is a silence as Alertmanager's API returns it.
type standing struct {
	ID        string    `json:"id"`
	CreatedBy string    `json:"createdBy"`
	Comment   string    `json:"comment"`
	EndsAt    time.Time `json:"endsAt"`
	Matchers  []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"matchers"`
	Status struct {
		State string `json:"state"`
	} `json:"status"`
}

// get reads from an Alertmanager's API.
func (y *yard) get(replica int, path string, into any) {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, y.lab.AlertmanagerURLs()[replica]+"/api/v2/"+path, nil)
	require.NoError(y.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(y.t, http.StatusOK, res.StatusCode, path)
	require.NoError(y.t, json.NewDecoder(res.Body).Decode(into))
}

func (y *yard) standing(replica int, id string) (s standing) {
	y.t.Helper()
	y.get(replica, "silence/"+id, &s)
	return s
}

// alertmanagers waits until both Alertmanagers have the node's alert as wanted: its state, and what
// mutes it in the group that goes to Drydock. The state is empty if an Alertmanager does not have
// the alert.
func (y *yard) alertmanagers(node, what string, wanted func(state string, mutedBy []string) bool) {
	y.t.Helper()
	type status struct {
		Status struct {
			State   string   `json:"state"`
			MutedBy []string `json:"mutedBy"`
		} `json:"status"`
	}
	filter := "?filter=" + url.QueryEscape(`node="`+node+`"`)
	as := func(replica int) bool {
		var alerts []status
		var groups []struct {
			Alerts []status `json:"alerts"`
		}
		y.get(replica, "alerts"+filter, &alerts)
		y.get(replica, "alerts/groups"+filter+"&receiver=drydock", &groups)
		state, muted := "", []string(nil)
		for _, a := range alerts {
			state = a.Status.State
		}
		for _, g := range groups {
			for _, a := range g.Alerts {
				muted = append(muted, a.Status.MutedBy...)
			}
		}
		return wanted(state, muted)
	}
	require.Eventually(y.t, func() bool { return as(0) && as(1) }, lab.Patience, 100*time.Millisecond, "the Alertmanagers' alert about %s: %s", node, what)
}

func isState(want string) func(string, []string) bool {
	return func(state string, _ []string) bool { return state == want }
}

// configure merges keys over Alertmanager's configuration, until the next Drydock is started.
func (y *yard) configure(d *lab.Drydock, over map[string]any) {
	y.t.Helper()
	require.NoError(y.t, y.lab.SetWebhook(y.t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: y.token, Config: over}))
}

// learnt returns how many alerts Drydock has learned from posts, by its own metric. An alert that
// its Node already has does not count, because the other Alertmanager may post it once more at any
// time.
func (y *yard) learnt(d *lab.Drydock) string {
	y.t.Helper()
	var lines []string
	for line := range strings.Lines(y.metrics(d)) {
		if strings.HasPrefix(line, "drydock_alerts_received_total") && !strings.Contains(line, `result="unchanged"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// asking is a policy that waits for a person's approval. Alertmanager's answer is checked before
// that, so a test sees that Drydock has received it.
func asking() map[string]any { return policy(map[string]any{"approval": true}) }

// waiting makes a fault whose alert was posted and whose repair waits for approval. It returns a
// function that approves the repair.
func (y *yard) waiting(node string) (approve func()) {
	y.t.Helper()
	y.fail(node)
	r := y.held(node, remediations.ReasonAwaitingApproval)
	return func() {
		y.t.Helper()
		y.annotate(node, remediations.ApproveKey, r.ID)
	}
}

// record waits until the node's repair is as wanted.
func (y *yard) record(node, what string, wanted func(*remediations.Record) bool) *remediations.Record {
	y.t.Helper()
	var r *remediations.Record
	y.await(node, what, func(n *corev1.Node) bool {
		r = remediations.ReadJournal(n).Record
		return r != nil && wanted(r)
	})
	return r
}

func verifying(r *remediations.Record) bool { return r.Phase == remediations.PhaseVerifying }

func underRepair(r *remediations.Record) bool { return r.Phase.InFlight() }

// recovers waits until the node is cured after that many reboots in this test.
func (y *yard) recovers(node string, reboots int) remediations.Entry {
	y.t.Helper()
	e := y.entry(node, func(e remediations.Entry) bool { return e.Outcome != remediations.OutcomeCancelled })
	require.Equal(y.t, remediations.OutcomeRecovered, e.Outcome, "%s: %s", node, e.Why)
	require.Equal(y.t, reboots, y.reboots(node), node)
	return e
}

// stubborn are machines that their first reboot does not cure.
func (y *yard) stubborn(nodes ...string) {
	y.t.Helper()
	y.machines(lab.CivoOptions{RebootTime: time.Second, Cures: helpedAgain(nodes...)})
}

// away makes the machines stay down when they are rebooted, until the test calls comeBack. Until
// then the alert fires and the repair continues.
func (y *yard) away(cures func(civosim.Instance, civosim.Op) bool) (comeBack func()) {
	y.t.Helper()
	let := make(chan struct{})
	y.machines(lab.CivoOptions{RebootTime: time.Second, Cures: func(in civosim.Instance, op civosim.Op) bool {
		cured := cures == nil || cures(in, op)
		if cured {
			<-let
		}
		return cured
	}})
	comeBack = sync.OnceFunc(func() { close(let) })
	y.t.Cleanup(comeBack)
	return comeBack
}

// helpedAgain returns a value of Cures: the first reboot of each of these machines does not help,
// and all other reboots do.
func helpedAgain(nodes ...string) func(civosim.Instance, civosim.Op) bool {
	var mu sync.Mutex
	tries := map[string]int{}
	for _, n := range nodes {
		tries[n] = 1
	}
	return func(in civosim.Instance, _ civosim.Op) bool {
		mu.Lock()
		defer mu.Unlock()
		tries[in.Hostname]--
		return tries[in.Hostname] < 0
	}
}

// soon is how long Drydock waits for a reboot that does not help, while a person does something
// about it.
const soon = "60s"

// twice returns a plan with two reboots. The first is given up after this wait.
func twice(first string, over map[string]any) map[string]any {
	p := policy(map[string]any{"plan": []any{
		map[string]any{"step": "reboot", "wait": first, "attempts": 1}, map[string]any{"step": "reboot", "wait": patience, "attempts": 1},
	}})
	for k, v := range over {
		p[k] = v
	}
	return p
}

// several allows many repairs at the same time, and one after the other on one machine.
func several(c map[string]any) map[string]any {
	c["limits"] = map[string]any{"concurrent": 10, "concurrentPerZone": 10, "concurrentPerPool": 10, "repairsPerNode": 100}
	return c
}

// relay passes Alertmanager's posts on, and records those that were delivered.
type relay struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex
	posts []post
}

// post is one post of an Alertmanager: the status of the group, and of each node.
type post struct {
	Status      string `json:"status"`
	ExternalURL string `json:"externalURL"`
	Alerts      []struct {
		Status string            `json:"status"`
		Labels map[string]string `json:"labels"`
	} `json:"alerts"`
}

func (p post) of(node string) (status string) {
	for _, a := range p.Alerts {
		if a.Labels["node"] == node {
			status = a.Status
		}
	}
	return status
}

// relay makes the posts for Drydock pass through a relay. over are keys for Alertmanager's
// configuration.
func (y *yard) relay(d *lab.Drydock, over map[string]any) *relay {
	y.t.Helper()
	r := &relay{t: y.t}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		status, err := r.deliver(in, d.ReceiverURL)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.WriteHeader(status)
	}))
	y.t.Cleanup(r.Close)
	require.NoError(y.t, y.lab.SetWebhook(y.t.Context(), lab.WebhookTarget{URL: r.URL, TokenFile: y.token, Config: over}))
	return r
}

func (r *relay) deliver(in *http.Request, to string) (status int, err error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return 0, err
	}
	out, err := http.NewRequestWithContext(in.Context(), in.Method, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	out.Header = in.Header.Clone()
	res, err := http.DefaultClient.Do(out)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	var p post
	if err := json.Unmarshal(body, &p); err != nil {
		return 0, err
	}
	if res.StatusCode == http.StatusOK {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.posts = append(r.posts, p)
	}
	return res.StatusCode, nil
}

// await waits until that many Alertmanagers have delivered such a post.
func (r *relay) await(what string, alertmanagers int, wanted func(post) bool) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		by := map[string]bool{}
		for _, p := range r.posts {
			if wanted(p) {
				by[p.ExternalURL] = true
			}
		}
		return len(by) >= alertmanagers
	}, lab.Patience, 100*time.Millisecond, what)
}

// fromBoth waits until both Alertmanagers have posted the node's alert. Otherwise an Alertmanager
// that is silenced before its post would still post when the silence ends.
func (r *relay) fromBoth(node string) {
	r.t.Helper()
	r.await("a post about "+node+" from each Alertmanager", 2, func(p post) bool { return p.of(node) == "firing" })
}

// inhibits is a rule that inhibits a node's alert while its rack has no power.
func inhibits(node string) map[string]any {
	return map[string]any{"inhibit_rules": []any{map[string]any{
		"source_matchers": []string{`alertname="RackWithoutPower"`}, "target_matchers": []string{`alertname="NodeNotReady"`, `node="` + node + `"`},
	}}}
}

// inhibit informs the second Alertmanager about a rack without power. It returns a function that
// ends that. If the first one knew it, too, no Alertmanager would post.
func (y *yard) inhibit() (end func()) {
	y.t.Helper()
	power := func(until time.Time) {
		out, err := y.tryAmtool(1, "alert", "add", "RackWithoutPower", "rack=r7",
			"--start="+y.began.Add(-time.Hour).Format(time.RFC3339), "--end="+until.Format(time.RFC3339))
		if err != nil {
			y.t.Errorf("posting an alert: %v: %s", err, out)
		}
	}
	end = func() { power(time.Now().Add(-time.Minute)) }
	power(time.Now().Add(20 * time.Minute))
	y.t.Cleanup(end)
	return end
}
