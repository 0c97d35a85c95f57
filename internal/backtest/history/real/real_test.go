package real

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/internal/lab"
)

// story is six hours in which Nodes flap, come and go, and kube-state-metrics restarts and is down.
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

// A TSDB folder and the API of a Prometheus that has the same data give the same moments, byte for byte. The rules read
// their own alerts, subqueries, offsets and ranges: all that Drydock ships.
func TestTheAPIAndTheFolderGiveTheSameMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Prometheus")
	}
	dir := story(t).Blocks(2 * time.Hour)
	read := func(past *history.Past, err error) (string, int, []history.Skip) {
		require.NoError(t, err)
		var all []history.Moment
		require.NoError(t, past.Moments(t.Context(), At(60), At(350), func(m history.Moment) error {
			all = append(all, m)
			return nil
		}))
		text, err := json.MarshalIndent(all, "", " ")
		require.NoError(t, err)
		alerts := 0
		for _, m := range all {
			alerts += len(m.Alerts)
		}
		skipped := past.Skipped()
		require.NoError(t, past.Close())
		return string(text), alerts, skipped
	}
	o := history.Options{Interval: 30 * time.Second}
	folder, alerts, skipped := read(history.OpenTSDB(t.Context(), dir, o))
	require.Greater(t, alerts, 10, "the rules fire")

	api, _, skippedThere := read(history.OpenPrometheus(lab.ServeTSDB(t, dir), http.DefaultClient, o))
	require.Equal(t, folder, api)
	require.Equal(t, skipped, skippedThere)
}

func TestAPrometheusThatDoesNotAnswerIsNamed(t *testing.T) {
	past, err := history.OpenPrometheus("http://127.0.0.1:1", http.DefaultClient, history.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, past.Close()) })
	err = past.Moments(t.Context(), At(0), At(10), func(history.Moment) error { return nil })
	require.ErrorContains(t, err, "reading from Prometheus at http://127.0.0.1:1/api/v1/read")
	_, err = history.OpenPrometheus("prometheus:9090", http.DefaultClient, history.Options{})
	require.ErrorContains(t, err, "http://HOST:PORT")
}
