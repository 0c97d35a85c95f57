package history_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// reading serves the API for remote reading: of each series, the samples in their order here.
func reading(t *testing.T, stored map[string][]prompb.Sample) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		packed, err := io.ReadAll(request.Body)
		body, err2 := snappy.Decode(nil, packed)
		var asked prompb.ReadRequest
		if err := errors.Join(err, err2, asked.Unmarshal(body)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		query := asked.Queries[0]
		result := &prompb.QueryResult{}
		for name, samples := range stored {
			lset := Series(t, name)
			if query.Matchers[0].Value != lset.Get(model.MetricNameLabel) {
				continue
			}
			found := &prompb.TimeSeries{}
			lset.Range(func(l labels.Label) {
				found.Labels = append(found.Labels, prompb.Label{Name: l.Name, Value: l.Value})
			})
			for _, s := range samples {
				if s.Timestamp >= query.StartTimestampMs && s.Timestamp <= query.EndTimestampMs {
					found.Samples = append(found.Samples, s)
				}
			}
			result.Timeseries = append(result.Timeseries, found)
		}
		answer, err := (&prompb.ReadResponse{Results: []*prompb.QueryResult{result}}).Marshal()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(snappy.Encode(nil, answer))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAClockThatGoesBackIsNamed(t *testing.T) {
	t.Parallel()
	for _, jumps := range []bool{true, false} { // false: the control
		stored := map[string][]prompb.Sample{}
		Every(0, 20, func(when time.Time, minutes float64) {
			for name, v := range KubeStateMetrics("a", Machine{Name: "one", Cordoned: jumps && minutes == 15}) {
				if jumps && minutes == 15 {
					when = At(12.25) // the clock goes back for one scrape
				}
				stored[name] = append(stored[name], prompb.Sample{Timestamp: when.UnixMilli(), Value: v})
			}
		})
		past, err := history.OpenPrometheus(reading(t, stored), http.DefaultClient, history.Options{Recorded: true})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, past.Close()) })
		require.Len(t, moments(t, past, 10, 20), 1, "what a wrong clock says is not believed")
		skipped := past.Skipped()
		if !jumps {
			require.Empty(t, skipped)
			continue
		}
		require.NotEmpty(t, skipped)
		require.Equal(t, At(12.25), skipped[0].From)
		require.Equal(t, At(14.5), skipped[0].Until)
		require.Contains(t, skipped[0].Why, "a clock went back")
	}
}
