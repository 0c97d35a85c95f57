package backtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// TestControlPlanesAreHeldAsLive: of three control-plane nodes, two are not Ready. etcd would lose
// its quorum with the next reboot, so both wait until one is well. Workers do not wait.
func TestControlPlanesAreHeldAsLive(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"control-plane", "worker"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			o := optionsOf(t, calm)
			until := at(4, 0)
			l := lived(t, o, until, func(l *live) {
				for _, name := range []string{"n00", "n01", "n02"} {
					l.edit(name, func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/"+role] = "" })
				}
				l.ill("n01", corev1.ConditionUnknown, hours(1, 0), hours(2, 30))
				l.ill("n02", corev1.ConditionUnknown, hours(1, 0), hours(1, 40))
			}, func(*live, *engine.Options) {})
			calls, holds := replayed(t, o, l.recorded.moments(), until)
			explained, unexplained := l.differences(calls, holds, until)
			require.Empty(t, slices.Concat(explained, unexplained))
			require.NotEmpty(t, l.calls)
			busy := slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(l.holds))...), func(s span) bool {
				return strings.HasPrefix(s.hold, string(remediations.ReasonControlPlaneBusy)) && s.until.Sub(s.from) > 20*time.Minute
			})
			require.Equal(t, role == "control-plane", busy)
			require.Equal(t, role == "control-plane", !l.calls[0].at.Before(hours(1, 40)), "%v", l.calls)
		})
	}
}

// TestUnreadyControlPlanesAreInTheRecord of kube-state-metrics, and hold repairs.
func TestUnreadyControlPlanesAreInTheRecord(t *testing.T) {
	t.Parallel()
	rules, err := history.ReadRules("../../rules/NodeNotReady.yaml")
	require.NoError(t, err)
	for _, role := range []string{"control-plane", "worker"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := historytest.New(t)
			historytest.Every(0, 120, func(when time.Time, minutes float64) {
				var machines []historytest.Machine
				for i := range 12 {
					m := historytest.Machine{Name: fmt.Sprintf("n%02d", i)}
					if i < 3 {
						m.Role = role
					}
					if i > 0 && i < 3 && minutes >= 20 && minutes < 90 {
						m.Ready = "unknown"
					}
					machines = append(machines, m)
				}
				r.Scrape(when, "ksm", historytest.KubeStateMetrics("ksm", machines...))
			})
			past, err := history.OpenPrometheus(r.Serve(), nil, history.Options{Rules: rules, Step: 30 * time.Second, Interval: 30 * time.Second})
			require.NoError(t, err)
			found, err := Backtest(t.Context(), past, historytest.At(10), historytest.At(115), Named{"", optionsOf(t, calm)})
			require.NoError(t, err)
			require.NoError(t, past.Close())
			i := slices.IndexFunc(found.Runs[0].Holds, func(h Held) bool { return h.Reason == remediations.ReasonControlPlaneBusy })
			if role == "worker" {
				require.Negative(t, i)
				require.NotZero(t, found.Runs[0].Totals.Acted)
				return
			}
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, 2, found.Runs[0].Holds[i].Nodes)
			require.Greater(t, found.Runs[0].Holds[i].Longest, Seconds(time.Hour))
			require.Zero(t, found.Runs[0].Totals.Acted)
		})
	}
}
