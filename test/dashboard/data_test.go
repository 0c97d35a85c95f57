package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// metricsAt is the address where Drydock will serve its metrics. Prometheus must know it from its
// start.
var metricsAt string

func TestMain(m *testing.M) {
	port, err := lab.FreePort()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	metricsAt = fmt.Sprintf("127.0.0.1:%d", port)
	ruleFor := time.Second
	lab.Main(m, lab.Options{
		NodeSpecs: lab.CivoNodes(20), RuleFor: &ruleFor, NodeGrace: lab.LongNodeGrace,
		RuleFiles: []string{"../../rules/NodeNotReady.yaml", "../../rules/DrydockSelfTest.yaml"},
		Scrape:    map[string][]string{"drydock": {metricsAt}},
	})
}

// get reads a URL completely.
func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, body
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, lab.Patience, 100*time.Millisecond, "waiting for %s", what)
}

func annotate(t *testing.T, l *lab.Lab, node, key, value string) {
	t.Helper()
	_, err := l.Client().CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value), metav1.PatchOptions{})
	require.NoError(t, err)
}

// lived starts a Drydock and lets it experience everything that the dashboard shows: a whole
// repair, a repair that is held, and an admission request.
func lived(t *testing.T) (l *lab.Lab, began time.Time) {
	t.Helper()
	l = lab.Shared(t)
	began = time.Now()
	admission, err := lab.NewAdmission(nil)
	require.NoError(t, err)
	token, err := l.PrepareDrydockWith(t.Context(), admission.Values(map[string]any{"mode": "enforce"}))
	require.NoError(t, err)
	civo, err := l.StartCivo(t.Context(), lab.CivoOptions{RebootTime: time.Second})
	require.NoError(t, err)
	t.Cleanup(civo.Close)
	d, err := l.StartDrydock(t.Context(), token, lab.DrydockOptions{Civo: civo, Admission: admission, Config: map[string]any{
		"metrics": map[string]any{"listen": metricsAt},
		"policies": []any{map[string]any{
			"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "1s", "cooldown": "0s",
			"witness": []any{map[string]any{"ready": false}},
			"plan":    []any{map[string]any{"step": "reboot", "wait": "10m"}},
		}},
	}})
	require.NoError(t, err)
	t.Cleanup(d.Kill)
	require.NoError(t, l.SetWebhook(t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: token}))

	await(t, "admission to be asked", func() bool {
		annotate(t, l, "node-1", remediations.PauseKey, "true since "+time.Now().Format(time.RFC3339Nano))
		_, metrics := get(t, "http://"+metricsAt+"/metrics")
		return strings.Contains(string(metrics), "drydock_admission_duration_seconds_count") &&
			!strings.Contains(string(metrics), "drydock_admission_duration_seconds_count 0\n")
	})
	for _, node := range []string{"node-0", "node-1"} {
		require.NoError(t, l.SetCondition(t.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
		t.Cleanup(func() { _ = l.Heal(context.WithoutCancel(t.Context()), node, "") })
	}
	var n *corev1.Node
	await(t, "the repair of node-0", func() bool {
		n, err = l.Client().CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
		require.NoError(t, err)
		return len(remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])) > 0
	})
	require.Equal(t, remediations.OutcomeRecovered, remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])[0].Outcome)
	// Do it once more now that Prometheus has the first value, because a rate needs two values.
	annotate(t, l, "node-1", remediations.PauseKey, "true since "+time.Now().Format(time.RFC3339Nano))
	await(t, "Prometheus to see admission asked", func() bool {
		_, body := get(t, l.PrometheusURL()+"/api/v1/query?"+url.Values{"query": {"rate(drydock_admission_duration_seconds_count[15s]) > 0"}}.Encode())
		return strings.Contains(string(body), `"metric"`)
	})
	return l, began
}

// data returns how many values of a query's result Grafana could draw.
func data(t *testing.T, l *lab.Lab, q target, from, to time.Time) (int, string) {
	t.Helper()
	expr := strings.NewReplacer(
		"$cluster", ".*", "$__rate_interval", "15s", "$__interval", "5s", "$__range", fmt.Sprintf("%ds", int(to.Sub(from).Seconds())),
	).Replace(q.Expr)
	require.NotContains(t, expr, "$", "a variable that nobody fills in")
	form := url.Values{"query": {expr}}
	path := "query"
	if q.Range {
		path = "query_range"
		form.Set("start", stamp(from))
		form.Set("end", stamp(to))
		form.Set("step", "1s")
	} else {
		form.Set("time", stamp(to))
	}
	code, body := get(t, l.PrometheusURL()+"/api/v1/"+path+"?"+form.Encode())
	require.Equal(t, http.StatusOK, code, "%s: %s", expr, body)
	var answer struct {
		Data struct {
			Result []struct {
				Value  [2]any
				Values [][2]any
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &answer))
	drawn := 0
	for _, r := range answer.Data.Result {
		for _, v := range append(r.Values, r.Value) {
			text, _ := v[1].(string)
			if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) {
				drawn++
			}
		}
	}
	return drawn, expr
}

func stamp(at time.Time) string { return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64) }

func TestEveryQueryReturnsData(t *testing.T) {
	l, began := lived(t)
	d, _ := read(t)
	for _, p := range d.all() {
		for _, q := range p.Targets {
			var expr string
			require.Eventually(t, func() bool {
				var drawn int
				drawn, expr = data(t, l, q, began, time.Now())
				return drawn > 0
			}, lab.Patience, time.Second, "panel %q shows nothing", p.Title)
			t.Logf("%-30s %s", p.Title, expr)
		}
	}

	// Each queried name is exported, and each exported name is queried.
	_, text := get(t, "http://"+metricsAt+"/metrics")
	asked := map[string]bool{}
	for _, p := range d.all() {
		for _, q := range p.Targets {
			for _, s := range selector.FindAllStringSubmatch(q.Expr, -1) {
				asked[strings.TrimSuffix(s[1], "_bucket")] = true
			}
		}
	}
	exported := map[string]bool{"drydock_info": false} // panels show drydock_build_info, which has the same content
	// The series about single nodes are for rules and for people's own queries. The panels show the
	// fleet.
	for _, name := range []string{"expected_gpus", "hold", "repair_attempts", "repair_phase", "sign"} {
		exported["drydock_node_"+name] = false
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "# TYPE drydock_"); ok {
			name := "drydock_" + strings.Fields(rest)[0]
			if _, skip := exported[name]; !skip {
				exported[name] = true
				require.True(t, asked[name], "no panel shows %s", name)
			}
		}
	}
	for name := range asked {
		if strings.HasPrefix(name, "drydock_") {
			require.True(t, exported[name], "nobody exports %s", name)
		}
	}
	t.Run("the report", func(t *testing.T) { theReportReadsTheSeries(t, l) })
}
