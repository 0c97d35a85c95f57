package history_test

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// several has one alert that is needed, one that may be needed, and two that are not needed.
const several = `
groups:
- name: some
  interval: 30s
  rules:
  - {alert: Asked, expr: 'kube_node_status_condition{condition="Ready",status="true"} == 0', labels: {kind: asked}}
  - {record: nodes, expr: 'count(kube_node_info)'}
  - {alert: Other, expr: no_such_metric > 0, labels: {kind: other}}
- name: others
  labels: {kind: other}
  rules:
  - {alert: Another, expr: vector(1)}
  - {alert: Unknown, expr: vector(1), labels: {kind: '{{ $labels.kind }}'}}
`

func TestARuleThatNoPolicyNeedsIsLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 60, func(when time.Time, minutes float64) {
		m := Machine{Name: "one"}
		if minutes >= 20 && minutes < 30 {
			m.Ready = "unknown"
		}
		r.Scrape(when, "a", KubeStateMetrics("a", m))
	})
	url := r.Serve()
	evaluate := func(matters func(model.LabelSet) bool) (all map[string]bool, skipped []history.Skip) {
		past := open(t, url, history.Options{Rules: rulesOf(t, several), Matters: matters})
		all = map[string]bool{}
		for _, m := range moments(t, past, 10, 60) {
			for _, a := range m.Alerts {
				all[string(a.Labels["alertname"])] = true
			}
		}
		return all, past.Skipped()
	}
	all, skipped := evaluate(nil)
	require.Equal(t, map[string]bool{"Asked": true, "Another": true, "Unknown": true}, all)
	require.Equal(t, []string{"no_such_metric"}, whats(skipped), "the control: no rule is left out")

	all, skipped = evaluate(func(fixed model.LabelSet) bool {
		kind, known := fixed["kind"]
		return !known || kind == "asked"
	})
	require.Equal(t, map[string]bool{"Asked": true, "Unknown": true}, all)
	require.Equal(t, []string{"2 rules"}, whats(skipped))
	require.Contains(t, skipped[0].Why, ": Another, Other")

	all, skipped = evaluate(func(model.LabelSet) bool { return false })
	require.Empty(t, all)
	require.Equal(t, []string{"4 rules"}, whats(skipped))
}

func whats(skipped []history.Skip) (out []string) {
	for _, s := range skipped {
		out = append(out, s.What)
	}
	return out
}

// TestWhatARuleReadsOfOtherRulesIsWhatWasRecorded: of a rule that did not run then, nothing is
// there, and that is named.
func TestWhatARuleReadsOfOtherRulesIsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"it ran": true, "it did not run": false} {
		r := New(t)
		Every(0, 60, func(when time.Time, _ float64) {
			r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"}))
			if recorded {
				r.Scrape(when, "rules", map[string]float64{`ALERTS{alertname="First",alertstate="firing",node="one"}`: 1, `nodes:ready{node="one"}`: 1})
			}
		})
		past := pastOf(t, r, history.Options{Rules: rulesOf(t, `
groups:
- name: chain
  interval: 30s
  rules:
  - {record: 'nodes:ready', expr: vector(1)}
  - {alert: First, expr: vector(1) > 2}
  - {alert: Reads, expr: 'ALERTS{alertname="First",alertstate="firing"} == 1'}
  - {alert: Counts, expr: 'nodes:ready > 0'}
`)})
		require.Equal(t, recorded, len(moments(t, past, 10, 60)[0].Alerts) == 2, name)
		if recorded {
			require.Empty(t, past.Skipped())
			continue
		}
		require.Equal(t, []string{`ALERTS{alertname="First"}`, "nodes:ready"}, whats(past.Skipped()))
	}
}
