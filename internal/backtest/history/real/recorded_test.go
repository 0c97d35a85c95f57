package real

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/soak"
)

// alerting are rules whose alerts come and go with the clock. %d is six seconds after the beginning.
const alerting = `
groups:
- name: clock
  interval: 1s
  rules:
  - {alert: Comes, expr: vector(time()) %% 8 < 3, labels: {node: one}}
  - {alert: Waits, expr: vector(time()) %% 8 < 5, for: 2s, labels: {node: one}}
  - {alert: Stays, expr: vector(time()) %% 8 < 2, keep_firing_for: 3s, labels: {node: one}}
  - {alert: Never, expr: vector(time()) %% 8 < 2, for: 3s, labels: {node: one}}
  - {alert: Since, expr: vector(time()) > %d, for: 3s, labels: {node: one}}
`

// record makes a rule file whose rules record these series, at each second.
func record(t *testing.T, series map[string]float64) string {
	t.Helper()
	type rule struct {
		Record string            `json:"record"`
		Expr   string            `json:"expr"`
		Labels map[string]string `json:"labels"`
	}
	var rules []rule
	for name, v := range series {
		set := Series(t, name).Map()
		r := rule{Record: set[model.MetricNameLabel], Expr: fmt.Sprintf("vector(%v)", v), Labels: set}
		delete(set, model.MetricNameLabel)
		rules = append(rules, r)
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "nodes", "interval": "1s", "rules": rules}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "nodes.yaml") // JSON is YAML
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// get is what Prometheus answers.
func get(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s", body)
	return string(body)
}

// milli is the time as a sample has it.
func milli(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

// TestWhatPrometheusRecordedIsWhatItsRulesSay: a Prometheus evaluates rules as time goes by. What it recorded of their alerts gives the
// same alerts as the same rules evaluated over the past, with the same beginnings and ends, to the millisecond.
func TestWhatPrometheusRecordedIsWhatItsRulesSay(t *testing.T) {
	if !soak.Whole() {
		t.Skip("a machine that is busy evaluates no rule each second; DRYDOCK_SOAK=1 runs it")
	}
	began := time.Now().Truncate(time.Second)
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, alerting, began.Unix()+6), 0o600))
	address := lab.ServeTSDB(t, t.TempDir(), file, record(t, KubeStateMetrics("ksm", Machine{Name: "one", Created: began.Add(-time.Hour)})))
	from, until := began.Add(20*time.Second), began.Add(40*time.Second)
	require.Eventually(t, func() bool {
		var answer struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		asks := url.QueryEscape(`timestamp(ALERTS{alertname="Since",alertstate="firing"})`)
		require.NoError(t, json.Unmarshal([]byte(get(t, address+"/api/v1/query?query="+asks)), &answer))
		if len(answer.Data.Result) == 0 {
			return false
		}
		last, err := strconv.ParseFloat(fmt.Sprint(answer.Data.Result[0].Value[1]), 64)
		require.NoError(t, err)
		return last > float64(until.Unix())+1
	}, 5*time.Minute, 500*time.Millisecond)
	for line := range strings.Lines(get(t, address+"/metrics")) {
		if strings.HasPrefix(line, "prometheus_rule_group_iterations_missed_total") && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			t.Skip("this machine is too busy: Prometheus left out evaluations, so it recorded something else: " + line)
		}
	}

	alerts := func(o history.Options) (out []history.Alert) {
		past, err := history.OpenPrometheus(address, http.DefaultClient, o)
		require.NoError(t, err)
		require.NoError(t, past.Moments(t.Context(), from, until, func(m history.Moment) error {
			require.Nil(t, m.Gap)
			for _, a := range m.Alerts {
				out = append(out, history.Alert{Labels: a.Labels, StartsAt: milli(a.StartsAt), EndsAt: milli(a.EndsAt)})
			}
			return nil
		}))
		require.NoError(t, past.Close())
		return out
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	evaluated := alerts(history.Options{Rules: []history.RuleFile{{Name: file, Text: text}}}) // by its name it is evaluated at the same times
	recorded := alerts(history.Options{Recorded: true})
	require.Equal(t, evaluated, recorded)
	require.Equal(t, recorded, alerts(history.Options{Recorded: true, Lookback: 5 * time.Second}), "also where it fired before the reading begins")

	count := map[model.LabelValue]int{}
	for _, a := range recorded {
		count[a.Labels[model.AlertNameLabel]]++
		if a.EndsAt.IsZero() {
			continue
		}
		lasted := map[model.LabelValue]time.Duration{"Comes": 3 * time.Second, "Waits": 3 * time.Second, "Stays": 5 * time.Second}
		require.Equal(t, lasted[a.Labels[model.AlertNameLabel]], a.EndsAt.Sub(a.StartsAt), a.Labels)
	}
	for _, name := range []model.LabelValue{"Comes", "Waits", "Stays"} {
		require.GreaterOrEqual(t, count[name], 4, name)
	}
	require.Equal(t, 1, count["Since"])
	require.Zero(t, count["Never"])
	since := recorded[slices.IndexFunc(recorded, func(a history.Alert) bool { return a.Labels[model.AlertNameLabel] == "Since" })].StartsAt
	require.WithinDuration(t, began.Add(9*time.Second), since, 2*time.Second, "not since it is active, and not since the reading began")
}
