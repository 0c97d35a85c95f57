package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// A group is not evaluated while that would change nothing. It still ends what it made: a series, whose end another group reads, and
// the fault of a rule that can be evaluated again, here from the first evaluation of a chunk on.
func TestAGroupThatHadNothingToDoMissesNothing(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 240, func(when time.Time, minutes float64) {
		machines := []Machine{{Name: "one"}, {Name: "two"}}
		if minutes >= 20 && minutes < 30 {
			machines[0].Ready = "unknown"
		}
		if minutes >= 120 && minutes < 130 {
			machines[0].Ready, machines[1].Ready = "unknown", "unknown"
		}
		r.Scrape(when, "a", KubeStateMetrics("a", machines...))
	})
	past := pastOf(t, r, history.Options{Rules: rulesOf(t, `
groups:
- name: records
  interval: 30s
  rules:
  - {record: unready, expr: 'count by (node) (kube_node_status_condition{condition="Ready",status="true",node="one"} == 0)'}
- name: reads
  interval: 30s
  rules:
  - {alert: Unready, expr: unready > 0}
- name: fails
  interval: 30s
  rules:
  - {alert: Twice, expr: 'label_replace(kube_node_status_condition{condition="Ready",status="true"} == 0, "node", "any", "", "")'}
`)})
	began, ended := map[string][]time.Time{}, map[string][]time.Time{}
	for _, m := range moments(t, past, 10, 240) { // a chunk ends at minute 130
		for _, a := range m.Alerts {
			name := string(a.Labels["alertname"])
			if a.EndsAt.IsZero() {
				began[name] = append(began[name], m.At)
			} else {
				ended[name] = append(ended[name], m.At)
			}
		}
	}
	require.Len(t, began["Unready"], 2)
	require.Len(t, ended["Unready"], 2)
	require.WithinRange(t, began["Unready"][0], At(20), At(21))
	require.WithinRange(t, ended["Unready"][0], At(30), At(31))
	require.Len(t, began["Twice"], 1)
	require.WithinRange(t, ended["Twice"][0], At(30), At(31))
	skipped := past.Skipped()
	require.Len(t, skipped, 1)
	require.Equal(t, "rule Twice", skipped[0].What)
	require.WithinRange(t, skipped[0].From, At(120), At(121))
	require.WithinRange(t, skipped[0].Until, At(130), At(131))
}

// What goes on as it is is not evaluated. It is still there for whoever reads it, and what changes of it is told.
func TestAnAlertThatFiresOnIsReadAndTold(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 200, func(when time.Time, minutes float64) {
		machines := []Machine{{Name: "one"}, {Name: "two"}}
		if minutes >= 100 {
			machines = machines[:1]
		}
		r.Scrape(when, "a", KubeStateMetrics("a", machines...))
	})
	past := pastOf(t, r, history.Options{Rules: rulesOf(t, `
groups:
- {name: fires, interval: 30s, rules: [{alert: Always, expr: vector(1)}]}
- {name: reads, interval: 30s, rules: [{alert: Sees, expr: 'ALERTS{alertname="Always",alertstate="firing"} == 1'}]}
- {name: counts, interval: 30s, rules: [{alert: Counts, expr: 'count(kube_node_info)', annotations: {n: '{{ $value }}'}}]}
- {name: asks, interval: 30s, rules: [{alert: Asks, expr: vector(2), annotations: {n: '{{ with query "count(kube_node_info)" }}{{ . | first | value }}{{ end }}'}}]}
- {name: waits, interval: 30s, rules: [{alert: Waits, expr: vector(3), for: 45m}]}
`)})
	told := map[string][]history.Alert{}
	for _, m := range moments(t, past, 10, 200) {
		for _, a := range m.Alerts {
			name := string(a.Labels["alertname"])
			told[name] = append(told[name], a)
		}
	}
	require.Len(t, told["Always"], 1)
	require.Len(t, told["Sees"], 1, "it never ends")
	for _, name := range []string{"Counts", "Asks"} {
		require.Len(t, told[name], 2, name)
		require.EqualValues(t, "2", told[name][0].Annotations["n"])
		require.EqualValues(t, "1", told[name][1].Annotations["n"])
	}
	require.Len(t, told["Waits"], 1)
	require.True(t, told["Waits"][0].EndsAt.IsZero())
}

// Two rules that ask the same do not see what the other made of the answer.
func TestRulesThatAskTheSameGetTheSame(t *testing.T) {
	t.Parallel()
	r := New(t)
	Every(0, 20, func(when time.Time, _ float64) { r.Scrape(when, "a", KubeStateMetrics("a", Machine{Name: "one"})) })
	past := pastOf(t, r, history.Options{Rules: rulesOf(t, `
groups:
- name: same
  interval: 30s
  rules:
  - {record: first, expr: kube_node_info, labels: {made: first}}
  - {alert: Second, expr: kube_node_info}
`)})
	first := moments(t, past, 10, 20)[0]
	require.Len(t, first.Alerts, 1)
	require.Empty(t, first.Alerts[0].Labels["made"])
}
