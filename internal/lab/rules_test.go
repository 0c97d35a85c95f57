package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRulesAreMadeQuick(t *testing.T) {
	const given = `
kind: PrometheusRule
spec:
  groups:
  - name: g
    interval: 1m
    rules:
    - {alert: A, expr: up, for: 15m, keep_firing_for: 5m}
    - {alert: B, expr: "min_over_time(up[3m] offset 3m) == 1 unless age < 600"}
    - {record: r, expr: up}
`
	quick := &RuleTimes{For: 1500 * time.Millisecond, KeepFiring: 2 * time.Second}
	for name, tc := range map[string]struct {
		quick *RuleTimes
		want  string
	}{
		"with other times, what an alert has of times is replaced": {quick, `
groups:
- name: g
  rules:
  - {alert: A, expr: up, for: 1500ms, keep_firing_for: 2000ms}
  - {alert: B, expr: "min_over_time(up[4s] offset 4s) == 1 unless age < 0"}
  - {record: r, expr: up}
`},
		"without it nothing is": {nil, `
groups:
- name: g
  interval: 1m
  rules:
  - {alert: A, expr: up, for: 15m, keep_firing_for: 5m}
  - {alert: B, expr: "min_over_time(up[3m] offset 3m) == 1 unless age < 600"}
  - {record: r, expr: up}
`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := adaptRules([]byte(given), tc.quick)
			require.NoError(t, err)
			require.YAMLEq(t, tc.want, string(got))
		})
	}
	_, err := adaptRules([]byte("rules: []"), nil)
	require.ErrorContains(t, err, "no groups")
}
