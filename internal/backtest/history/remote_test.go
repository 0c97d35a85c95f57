package history_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
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

// TestNoErrorTellsThePassword of the URL: it ends in the log of whatever ran the backtest.
func TestNoErrorTellsThePassword(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, "no: "+strconv.Itoa(len(password)), http.StatusUnauthorized)
	}))
	defer server.Close()
	past, err := history.OpenPrometheus(strings.Replace(server.URL, "://", "://ops:s3cret@", 1), http.DefaultClient, history.Options{Recorded: true})
	require.NoError(t, err)
	err = past.Moments(t.Context(), At(10), At(20), func(history.Moment) error { return nil })
	require.ErrorContains(t, err, "no: 6", "the server has it")
	require.NotContains(t, err.Error(), "s3cret")
	require.NoError(t, past.Close())
	_, err = history.OpenPrometheus("ops:s3cret@prometheus", http.DefaultClient, history.Options{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")
}

// TestAnAnswerThatIsDamagedIsAnError: Prometheus sends its chunks in frames. What cannot be read ends the reading, and is not left out.
func TestAnAnswerThatIsDamagedIsAnError(t *testing.T) {
	t.Parallel()
	frame := func(of *prompb.ChunkedReadResponse) []byte {
		message, err := of.Marshal()
		require.NoError(t, err)
		out := binary.AppendUvarint(nil, uint64(len(message)))
		out = binary.BigEndian.AppendUint32(out, crc32.Checksum(message, crc32.MakeTable(crc32.Castagnoli)))
		return append(out, message...)
	}
	chunk := chunkenc.NewXORChunk()
	add, err := chunk.Appender()
	require.NoError(t, err)
	Every(0, 20, func(when time.Time, _ float64) { add.Append(0, when.UnixMilli(), 1) })
	series := func(encoding prompb.Chunk_Encoding) *prompb.ChunkedReadResponse {
		return &prompb.ChunkedReadResponse{ChunkedSeries: []*prompb.ChunkedSeries{{
			Labels: []prompb.Label{{Name: "__name__", Value: "kube_node_info"}, {Name: "job", Value: "kube-state-metrics"}, {Name: "node", Value: "one"}},
			Chunks: []prompb.Chunk{{MinTimeMs: At(0).UnixMilli(), MaxTimeMs: At(19.5).UnixMilli(), Type: encoding, Data: chunk.Bytes()}},
		}}}
	}
	whole := frame(series(prompb.Chunk_XOR))
	damaged := slices.Clone(whole)
	damaged[len(damaged)-1] ^= 1
	for name, c := range map[string]struct {
		answer []byte
		says   string
	}{
		"whole, the control":              {answer: whole},
		"damaged":                         {answer: damaged, says: "its checksum is another one"},
		"cut within a frame":              {answer: whole[:len(whole)-1], says: "unexpected EOF"},
		"cut within the checksum":         {answer: whole[:4], says: "unexpected EOF"},
		"cut after the length":            {answer: whole[:1], says: "unexpected EOF"},
		"cut after the checksum":          {answer: whole[:5], says: "unexpected EOF"},
		"too long":                        {answer: binary.AppendUvarint(nil, 1<<40), says: "at most"},
		"an encoding of the time to come": {answer: frame(series(99)), says: "invalid chunk encoding"},
		"an error instead of a frame":     {answer: []byte("the server is out of memory"), says: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				w.Header().Set("Content-Type", "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse")
				_, _ = w.Write(c.answer)
			}))
			t.Cleanup(server.Close)
			past, err := history.OpenPrometheus(server.URL, http.DefaultClient, history.Options{Recorded: true})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, past.Close()) })
			var got []history.Moment
			err = past.Moments(t.Context(), At(10), At(20), func(m history.Moment) error {
				got = append(got, m)
				return nil
			})
			if c.says == "" {
				require.NoError(t, err)
				require.Equal(t, []string{"one"}, names(got[0].Nodes))
				return
			}
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, server.URL)
			require.Empty(t, got)
		})
	}
}

// TestReplicasAreOne: behind one Service now one replica answers, now the other, and some servers answer for both at once.
func TestReplicasAreOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drop   string
		both   bool
		alerts int
	}{"one of the two answers": {"prometheus_replica", false, 1}, "both answer": {"prometheus_replica", true, 1}, "the label is kept, the control": {"", false, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := map[string][]prompb.Sample{}
			Every(0, 30, func(when time.Time, minutes float64) {
				shown := KubeStateMetrics("a", Machine{Name: "one"})
				shown[`ALERTS{alertname="A",alertstate="firing",node="one"}`] = 1
				for i, replica := range []string{"prometheus-0", "prometheus-1"} {
					if !c.both && (minutes >= 15) != (i == 1) {
						continue
					}
					for series, v := range shown {
						series = strings.TrimSuffix(series, "}") + `,prometheus_replica="` + replica + `"}`
						stored[series] = append(stored[series], prompb.Sample{Timestamp: when.UnixMilli(), Value: v})
					}
				}
			})
			past, err := history.OpenPrometheus(reading(t, stored), http.DefaultClient, history.Options{Recorded: true, ReplicaLabel: c.drop})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, past.Close()) })
			alerts := map[string]bool{}
			for _, m := range moments(t, past, 10, 30) {
				for _, a := range m.Alerts {
					require.Equal(t, c.drop == "", len(a.Labels["prometheus_replica"]) > 0)
					alerts[a.Labels.String()] = true
				}
			}
			require.Len(t, alerts, c.alerts)
			require.Empty(t, past.Skipped())
		})
	}
}
