// Package connect runs the real Drydock with a real Prometheus and Alertmanager, with the shipped
// interval between polls. It tests how soon an installation reports that it is not connected.
package connect

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

const ruleFile = "../../rules/DrydockSelfTest.yaml"

func TestMain(m *testing.M) {
	// The installations run in parallel, because they mostly wait.
	flag.Parse()
	_ = flag.Set("test.parallel", "6")
	lab.Main(m, lab.Options{Nodes: 2, RuleFiles: []string{ruleFile}, Alertmanagers: 2})
}

// harbour is the lab, with one installation of Drydock for each test. The installations query the
// first Alertmanager. The second one also posts, and is for tests that stop an Alertmanager.
type harbour struct {
	lab   *lab.Lab
	token string

	mu     sync.Mutex
	routes map[string]route
}

// route is Alertmanager's configuration for one installation.
type route struct {
	receiver, matcher string
	url, tokenFile    string
}

// set gives an installation another route. A nil route removes it.
func (h *harbour) set(t *testing.T, name string, r *route) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.routes, name); r != nil {
		h.routes[name] = *r
	}
	receivers := []any{map[string]any{"name": "nobody"}}
	routes := []any{}
	for _, name := range slices.Sorted(maps.Keys(h.routes)) {
		r := h.routes[name]
		receivers = append(receivers, map[string]any{"name": r.receiver, "webhook_configs": []any{map[string]any{
			"url": r.url, "http_config": map[string]any{"authorization": map[string]any{"type": "Bearer", "credentials_file": r.tokenFile}},
		}}})
		routes = append(routes, map[string]any{"receiver": r.receiver, "matchers": []string{r.matcher}, "continue": true, "repeat_interval": "5m"})
	}
	require.NoError(t, h.lab.SetWebhook(t.Context(), lab.WebhookTarget{Config: map[string]any{
		"route": map[string]any{"receiver": "nobody", "routes": routes}, "receivers": receivers,
	}}))
}

// berth is one installation in a namespace of its own.
type berth struct {
	*harbour
	t     *testing.T
	name  string
	port  int
	began time.Time
}

// berth installs the chart into a namespace of the test's own.
func (h *harbour) berth(t *testing.T, name string) *berth {
	t.Helper()
	if name != lab.Namespace {
		require.NoError(t, h.lab.InstallChart(t.Context(), name, name, nil))
	}
	port, err := lab.FreePort()
	require.NoError(t, err)
	return &berth{harbour: h, t: t, name: name, port: port}
}

// receiver returns the right route to the installation.
func (b *berth) receiver() *route {
	return &route{receiver: b.name, matcher: `alertname="DrydockSelfTest"`, url: fmt.Sprintf("http://127.0.0.1:%d/v1/alerts", b.port), tokenFile: b.token}
}

// start starts a replica that receives posts at the address of the right route, or at another
// address.
func (b *berth) start(replica string, port int, alertmanager map[string]any) *lab.Drydock {
	b.t.Helper()
	config := map[string]any{"urls": b.lab.AlertmanagerURLs()[:1], "pollInterval": "15s", "maxStaleness": "30s", "receiver": b.name}
	maps.Copy(config, alertmanager)
	b.began = time.Now()
	d, err := b.lab.StartDrydock(b.t.Context(), b.token, lab.DrydockOptions{
		Name: b.name + replica, Namespace: b.name, Port: port, Config: map[string]any{"mode": "observe", "alertmanager": config},
	})
	require.NoError(b.t, err)
	b.t.Cleanup(d.Kill)
	return d
}

func (b *berth) ledger() *ledger.Ledger {
	cm, err := b.lab.Client().CoreV1().ConfigMaps(b.name).Get(b.t.Context(), "drydock-ledger", metav1.GetOptions{})
	if err != nil {
		return &ledger.Ledger{} // the ledger does not exist yet
	}
	l, err := ledger.Decode(cm.Data)
	require.NoError(b.t, err)
	return l
}

// becomes waits until the ledger, the metric and the Event show the state. It fails if another bad
// state comes first. In the soak it also fails after the limit that holds on a machine without
// other load.
func (b *berth) becomes(d *lab.Drydock, state selftest.State, from time.Time, limit time.Duration) *ledger.Ledger {
	b.t.Helper()
	if !soak.Whole() {
		limit = lab.Patience
	}
	was := b.ledger().Status.SelfTest.State
	l := b.ledger()
	for ; l.Status.SelfTest.State != state; l = b.ledger() {
		is := l.Status.SelfTest
		require.Less(b.t, time.Since(from), limit, "%s is %q: %s", b.name, is.State, is.Message)
		require.True(b.t, is.State == was || !is.State.Bad(), "%s: %s", is.State, is.Message)
		b.pause()
	}
	b.t.Logf("%-14s %-12s after %5.1f s: %s", b.name, state, time.Since(from).Seconds(), l.Status.SelfTest.Message)
	b.measures(d, fmt.Sprintf("drydock_selftest_state{state=%q} 1\n", state))
	want := "Connected ok"
	if state.Bad() {
		want = "NotConnected " + string(state)
	}
	for state.Bad() || was.Bad() {
		if slices.Contains(b.events(), want) {
			break
		}
		require.Less(b.t, time.Since(from), limit+10*time.Second, "%v, but no %q", b.events(), want)
		b.pause()
	}
	return l
}

func (b *berth) pause() {
	b.t.Helper()
	select {
	case <-b.t.Context().Done():
		b.t.FailNow()
	case <-time.After(200 * time.Millisecond):
	}
}

// measures waits until Drydock's metrics contain the line.
func (b *berth) measures(d *lab.Drydock, line string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return strings.Contains(b.metrics(d), line) }, lab.Patience, 200*time.Millisecond, line)
}

func (b *berth) metrics(d *lab.Drydock) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, d.MetricsURL, nil)
	require.NoError(b.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(b.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return string(text)
}

// events returns the Events about the connection.
func (b *berth) events() (out []string) {
	b.t.Helper()
	all, err := b.lab.Client().EventsV1().Events(b.name).List(b.t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=drydock-ledger"})
	require.NoError(b.t, err)
	for _, e := range all.Items {
		if strings.HasSuffix(e.Reason, "Connected") {
			out = append(out, e.Reason+" "+e.Action)
		}
	}
	return out
}

// selfTest runs the command that `helm test` runs, with Drydock's own ServiceAccount.
func (b *berth) selfTest(d *lab.Drydock, timeout string) (said string, err error) {
	b.t.Helper()
	kubeconfig, err := b.lab.ServiceAccountKubeconfig(b.t.Context(), b.name, b.name, "")
	require.NoError(b.t, err)
	out, err := exec.CommandContext(b.t.Context(), b.lab.DrydockProgram(), "selftest", "--config", d.ConfigFile, "--kubeconfig", kubeconfig, "--timeout", timeout).CombinedOutput()
	return string(out), err
}

func newHarbour(t *testing.T) *harbour {
	t.Helper()
	l := lab.Shared(t)
	token, err := l.PrepareDrydock(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	return &harbour{lab: l, token: token, routes: map[string]route{}}
}
