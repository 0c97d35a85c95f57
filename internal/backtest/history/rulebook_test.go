package history_test

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// chained has an alert that reads what a recording rule makes, which reads another alert; and two that nobody asks for.
const chained = `
groups:
- name: chained
  interval: 30s
  rules:
  - {alert: First, expr: 'kube_node_status_condition{condition="Ready",status="true"} == 0', labels: {kind: first}}
  - {record: firsts, expr: 'count by (node) (ALERTS{alertname="First",alertstate="firing"})'}
  - {alert: Asked, expr: firsts > 0, labels: {kind: asked}}
  - {alert: Other, expr: no_such_metric > 0, labels: {kind: other}}
- name: others
  labels: {kind: other}
  rules:
  - {alert: Another, expr: vector(1)}
  - {alert: Unknown, expr: vector(1), labels: {kind: '{{ $labels.kind }}'}}
`

func TestARuleWhoseAlertsMatterToNobodyIsLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 60, func(when time.Time, minutes float64) {
		m := Machine{Name: "one"}
		if minutes >= 20 && minutes < 30 {
			m.Ready = "unknown"
		}
		r.Scrape(when, "a", KubeStateMetrics("a", m))
	})
	dir := r.Blocks(2 * time.Hour)
	told := func(matters func(model.LabelSet) bool) (asked []history.Alert, all map[string]bool, skipped []history.Skip) {
		past := openTSDB(t, dir, history.Options{Rules: rulesOf(t, chained), Matters: matters})
		all = map[string]bool{}
		for _, m := range moments(t, past, 10, 60) {
			for _, a := range m.Alerts {
				if name := string(a.Labels["alertname"]); name != "Asked" {
					all[name] = true
					continue
				}
				asked = append(asked, a)
			}
		}
		return asked, all, past.Skipped()
	}
	everything, all, skipped := told(nil)
	require.Len(t, everything, 2)
	require.Equal(t, map[string]bool{"First": true, "Another": true, "Unknown": true}, all)
	require.Equal(t, []string{"no_such_metric"}, whats(skipped), "the control: no rule is left out")

	asked, all, skipped := told(func(fixed model.LabelSet) bool {
		kind, known := fixed["kind"]
		return !known || kind == "asked"
	})
	require.Equal(t, everything, asked)
	require.Equal(t, map[string]bool{"First": true, "Unknown": true}, all, "one is read by a rule that matters, of the other nothing is known")
	require.Equal(t, []string{"2 rules"}, whats(skipped))
	require.Contains(t, skipped[0].Why, ": Another, Other")

	none, all, skipped := told(func(model.LabelSet) bool { return false })
	require.Empty(t, none)
	require.Empty(t, all)
	require.Equal(t, []string{"6 rules"}, whats(skipped))
}

func whats(skipped []history.Skip) (out []string) {
	for _, s := range skipped {
		out = append(out, s.What)
	}
	return out
}

// A template that may ask for anything keeps all rules: nobody knows what it reads.
func TestATemplateThatQueriesKeepsAllRules(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 20, func(when time.Time, _ float64) { r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"})) })
	dir := r.Blocks(2 * time.Hour)
	for text, left := range map[string]int{"{{ with query \"firsts\" }}{{ . }}{{ end }}": 0, "{{ $value }}, by no query": 1} {
		past := openTSDB(t, dir, history.Options{
			Rules:   rulesOf(t, "groups: [{name: one, rules: [{record: firsts, expr: vector(1)}, {alert: Asked, expr: vector(1), annotations: {a: '"+text+"'}}]}]"),
			Matters: func(fixed model.LabelSet) bool { return fixed["alertname"] == "Asked" },
		})
		moments(t, past, 10, 20)
		require.Len(t, past.Skipped(), left, text)
	}
}
