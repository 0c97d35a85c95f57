package real

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/internal/lab"
)

// clockRule is a rule whose alert comes and goes with the clock.
type clockRule struct {
	holds      func(second float64) bool
	hold, keep time.Duration
}

// evaluated is the series that has a sample of each evaluation of the rules.
const evaluated = "clock:evaluated"

// alerting gives the rules and their file. Since holds from a second on.
func alerting(since time.Time) (map[model.LabelValue]clockRule, string) {
	below := func(limit float64) func(float64) bool {
		return func(second float64) bool { return math.Mod(second, 8) < limit }
	}
	rules := map[model.LabelValue]clockRule{
		"Comes": {holds: below(3)},
		"Waits": {holds: below(5), hold: 2 * time.Second},
		"Stays": {holds: below(2), keep: 3 * time.Second},
		"Never": {holds: below(2), hold: 3 * time.Second},
		"Since": {holds: func(second float64) bool { return second > float64(since.Unix()) }, hold: 3 * time.Second},
	}
	return rules, fmt.Sprintf(`
groups:
- name: clock
  interval: 1s
  rules:
  - {record: %s, expr: vector(time())}
  - {alert: Comes, expr: vector(time()) %% 8 < 3, labels: {node: one}}
  - {alert: Waits, expr: vector(time()) %% 8 < 5, for: 2s, labels: {node: one}}
  - {alert: Stays, expr: vector(time()) %% 8 < 2, keep_firing_for: 3s, labels: {node: one}}
  - {alert: Never, expr: vector(time()) %% 8 < 2, for: 3s, labels: {node: one}}
  - {alert: Since, expr: vector(time()) > %d, for: 3s, labels: {node: one}}
`, evaluated, since.Unix())
}

// fires gives when an alert of the rule fires, if the rule is evaluated at these times.
func (r clockRule) fires(at []time.Time) (out []history.Alert) {
	var active, kept, fired time.Time
	for _, now := range at {
		switch holds := r.holds(float64(now.UnixMilli()) / 1000); {
		case holds:
			if kept = (time.Time{}); active.IsZero() {
				active = now
			}
			if fired.IsZero() && now.Sub(active) >= r.hold {
				fired = now
			}
			continue
		case !fired.IsZero() && r.keep > 0:
			if kept.IsZero() {
				kept = now
			}
			if now.Sub(kept) < r.keep {
				continue
			}
		}
		if !fired.IsZero() {
			out = append(out, history.Alert{StartsAt: fired, EndsAt: now})
		}
		active, kept, fired = time.Time{}, time.Time{}, time.Time{}
	}
	if !fired.IsZero() {
		out = append(out, history.Alert{StartsAt: fired})
	}
	return out
}

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

// expected are the alerts that a reading from from until until gives, each a line.
func expected(rules map[model.LabelValue]clockRule, at []time.Time, from, until time.Time) (out []string) {
	for name, rule := range rules {
		for _, a := range rule.fires(at) {
			if a.StartsAt = seen(a.StartsAt); !a.EndsAt.IsZero() {
				a.EndsAt = seen(a.EndsAt)
			}
			a.Labels = model.LabelSet{model.AlertNameLabel: name, "node": "one"}
			if a.StartsAt.Before(until) && (a.EndsAt.IsZero() || a.EndsAt.After(from)) {
				out = append(out, line(history.Alert{Labels: a.Labels, StartsAt: a.StartsAt}))
			}
			if a.EndsAt.After(from) && a.EndsAt.Before(until) {
				out = append(out, line(a))
			}
		}
	}
	slices.Sort(out)
	return out
}

// seen is when something is seen that is asked about each second.
func seen(at time.Time) time.Time { return at.Add(time.Second - 1).Truncate(time.Second) }

// line is what matters of an alert.
func line(a history.Alert) string {
	ends := "goes on"
	if !a.EndsAt.IsZero() {
		ends = a.EndsAt.UTC().Format("15:04:05.000")
	}
	return fmt.Sprint(a.Labels, " ", a.StartsAt.UTC().Format("15:04:05.000"), " ", ends)
}

// evaluations are the times at which Prometheus has evaluated the rules so far.
func evaluations(t *testing.T, address string) (out []time.Time) {
	t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Values [][2]any } }
	}
	text := get(t, address+"/api/v1/query?query="+url.QueryEscape(evaluated+"[1h]"))
	require.NoError(t, json.Unmarshal([]byte(text), &answer))
	for _, series := range answer.Data.Result {
		for _, v := range series.Values {
			seconds, is := v[0].(float64)
			require.True(t, is)
			out = append(out, time.UnixMilli(int64(math.Round(seconds*1000))).UTC())
		}
	}
	return out
}

// TestWhatPrometheusRecordedIsWhatItsRulesSay: a Prometheus evaluates rules as time goes by. What
// it recorded of their alerts gives the alerts that it had, with their beginnings and ends, to the
// step of the questions, wherever the reading begins. So do the same rules evaluated over the past,
// but that they are evaluated each second: a Prometheus that has no processor leaves out
// evaluations. An alert that would have ended meanwhile then stays active. The test causes that,
// and the recorded series of the evaluations shows each other place.
func TestWhatPrometheusRecordedIsWhatItsRulesSay(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Prometheus")
	}
	began := time.Now().Truncate(time.Second)
	rules, text := alerting(began.Add(6 * time.Second))
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	node := record(t, KubeStateMetrics("ksm", Machine{Name: "one", Created: began.Add(-time.Hour)}))
	prometheus, address := lab.StartTSDB(t, t.TempDir(), file, node)

	// await waits until Prometheus has evaluated the rules at a time that satisfies the condition is.
	await := func(is func(last time.Time) bool) (at []time.Time) {
		t.Helper()
		require.Eventually(t, func() bool {
			at = evaluations(t, address)
			return len(at) > 0 && is(at[len(at)-1])
		}, 5*time.Minute, 50*time.Millisecond)
		return at
	}
	after := func(when time.Time) func(time.Time) bool {
		return func(last time.Time) bool { return last.After(when) }
	}
	second := func(at time.Time) int64 { return at.Unix() % 8 }
	at := await(after(began.Add(20 * time.Second)))
	var stopped time.Time
	for joined := false; !joined; {
		at = await(func(last time.Time) bool { return second(last) == 2 })
		stopped = at[len(at)-1]
		require.NoError(t, prometheus.Signal(syscall.SIGSTOP))
		time.Sleep(time.Until(stopped.Add(6 * time.Second))) // Comes holds again
		require.NoError(t, prometheus.Signal(syscall.SIGCONT))
		at = await(after(stopped.Add(3 * time.Second)))
		i := slices.Index(at, stopped)
		joined = second(at[i+1]) < 3 && at[i+1].Sub(stopped) > 3*time.Second
	}
	until := at[len(at)-1].Add(10 * time.Second)
	at = await(after(until.Add(time.Second)))
	hole := time.Second
	for i := range at[1:] {
		require.Zero(t, at[i+1].Sub(at[i])%time.Second, "the evaluations are on a grid")
		hole = max(hole, at[i+1].Sub(at[i]))
	}
	t.Logf("%d evaluations, with %s between them at most", len(at), hole)

	alerts := func(o history.Options, from time.Time) (out []string) {
		o.Step = time.Second
		past, err := history.OpenPrometheus(address, nil, o)
		require.NoError(t, err)
		require.NoError(t, past.Moments(t.Context(), from, until, func(m history.Moment) error {
			require.Nil(t, m.Gap)
			for _, a := range m.Alerts {
				out = append(out, line(a))
			}
			return nil
		}))
		require.NoError(t, past.Close())
		slices.Sort(out)
		return out
	}
	for from := at[0].Add(12 * time.Second); from.Before(until.Add(-time.Second)); from = from.Add(time.Second) {
		recorded := expected(rules, at, from, until)
		require.Equal(t, recorded, alerts(history.Options{Recorded: true}, from), "from %s", from)
	}

	var each []time.Time
	for when := at[0].Add(-time.Hour).Truncate(time.Second); when.Before(until); when = when.Add(time.Second) {
		each = append(each, when)
	}
	from := at[0].Add(12 * time.Second)
	got := alerts(history.Options{Rules: []history.RuleFile{{Name: file, Text: []byte(text)}}}, from)
	require.Equal(t, expected(rules, each, from, until), got)
	require.NotEqual(t, expected(rules, at, from, until), got, "the control: evaluations were left out")
	for name, lasts := range map[model.LabelValue]time.Duration{"Comes": 3 * time.Second, "Waits": 3 * time.Second, "Stays": 5 * time.Second} {
		all := rules[name].fires(each)
		require.Greater(t, len(all), 400, name)
		require.Equal(t, lasts, all[1].EndsAt.Sub(all[1].StartsAt), name)
	}
	require.Len(t, rules["Since"].fires(each), 1)
	require.Empty(t, rules["Never"].fires(each))
}
