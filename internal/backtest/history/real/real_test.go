package real

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/internal/lab"
)

// story is six hours with Nodes that flap, come and go. kube-state-metrics restarts and is down.
func story(t *testing.T) *Recording {
	r := New(t)
	instance := "a"
	Every(0, 360, func(when time.Time, minutes float64) {
		switch {
		case minutes >= 100 && minutes < 110:
			r.Scrape(when, instance, nil)
			return
		case minutes == 200:
			r.Scrape(when, "a", nil)
			instance = "b"
		case minutes >= 300 && minutes < 330:
			return // Prometheus itself was down
		}
		machines := []Machine{{Name: "one"}, {Name: "two"}, {Name: "three"}}
		for i := range machines {
			if int(minutes)%(50+10*i) > 35 {
				machines[i].Ready = []string{"unknown", "false"}[i%2]
			}
		}
		machines[2].Cordoned = int(minutes)%100 > 80
		if int(minutes)%90 > 45 {
			machines = append(machines, Machine{Name: "four", Taint: "new"})
		}
		r.Scrape(when, instance, KubeStateMetrics(instance, machines...))
	})
	return r
}

// moments are those that a server gives, and what was not read.
func moments(t *testing.T, url string, o history.Options) (text string, alerts int, skipped []history.Skip) {
	t.Helper()
	past, err := history.OpenPrometheus(url, nil, o)
	require.NoError(t, err)
	var all []history.Moment
	require.NoError(t, past.Moments(t.Context(), At(60), At(350), func(m history.Moment) error {
		all = append(all, m)
		return nil
	}))
	out, err := json.MarshalIndent(all, "", " ")
	require.NoError(t, err)
	for _, m := range all {
		alerts += len(m.Alerts)
	}
	require.NoError(t, past.Close())
	return string(out), alerts, past.Skipped()
}

// TestOtherServersAnswerTheSame: a real Prometheus, and VictoriaMetrics, which implements the API
// and PromQL itself: both give the moments that the server of the other tests gives of the same
// samples, byte for byte, of all rules that Drydock ships.
func TestOtherServersAnswerTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Prometheus and VictoriaMetrics")
	}
	past := story(t).Unmarked()
	o := history.Options{Interval: 30 * time.Second, NodeTaints: []string{"new"}}
	want, alerts, skipped := moments(t, past.Serve(), o)
	require.Greater(t, alerts, 10, "the rules fire")
	for name, serve := range map[string]func() string{
		"Prometheus":      func() string { return lab.ServeTSDB(t, lab.WriteTSDB(t, past.OpenMetrics())) },
		"VictoriaMetrics": func() string { return lab.ServeVictoriaMetrics(t, past.OpenMetrics()) },
	} {
		got, _, skippedThere := moments(t, serve(), o)
		require.Equal(t, want, got, name)
		require.Equal(t, skipped, skippedThere, name)
	}
}
