package history_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
)

var epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// at is so many minutes after the epoch.
func at(minutes float64) time.Time { return epoch.Add(time.Duration(minutes * float64(time.Minute))) }

// recording is what Prometheus stores of the scrapes of kube-state-metrics.
type recording struct {
	t       testing.TB
	samples map[string][]sample
	last    map[string]map[string]float64 // by target
}

type sample struct {
	at int64
	v  float64
}

func newRecording(t testing.TB) *recording {
	return &recording{t: t, samples: map[string][]sample{}, last: map[string]map[string]float64{}}
}

// scrape stores what one target shows, and a staleness marker of each series that it showed before. Nothing: it is down.
func (r *recording) scrape(when time.Time, target string, shows map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(r.last[target])) {
		if _, still := shows[name]; !still {
			r.add(name, when, math.Float64frombits(value.StaleNaN))
		}
	}
	for name, v := range shows {
		r.add(name, when, v)
	}
	r.last[target] = maps.Clone(shows)
}

func (r *recording) add(series string, when time.Time, v float64) {
	r.samples[series] = append(r.samples[series], sample{when.UnixMilli(), v})
}

// blocks writes the recording as blocks of so long, and gives their folder and the folders of the blocks.
func (r *recording) blocks(long time.Duration) string {
	dir := r.t.TempDir()
	parse := parser.NewParser(parser.Options{})
	var first, last int64 = math.MaxInt64, 0
	for _, samples := range r.samples {
		first, last = min(first, samples[0].at), max(last, samples[len(samples)-1].at)
	}
	step := long.Milliseconds()
	for from := first - first%step; from <= last; from += step {
		writer, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, 10*step)
		require.NoError(r.t, err)
		app := writer.Appender(context.Background())
		count := 0
		for name, samples := range r.samples {
			lset, err := parse.ParseMetric(name)
			require.NoError(r.t, err, name)
			for _, s := range samples {
				if s.at >= from && s.at < from+step {
					_, err := app.Append(0, lset, s.at, s.v)
					require.NoError(r.t, err, name)
					count++
				}
			}
		}
		require.NoError(r.t, app.Commit())
		if count > 0 {
			_, err = writer.Flush(context.Background())
			require.NoError(r.t, err)
		}
		require.NoError(r.t, writer.Close())
	}
	return dir
}

// machine is what kube-state-metrics knows of a Node.
type machine struct {
	name     string
	ready    string // true, false, unknown
	cordoned bool
	version  string
	labels   string
	taint    string
}

const job = `job="kube-state-metrics"`

// ksm is what kube-state-metrics at an address shows.
func ksm(instance string, machines ...machine) map[string]float64 {
	out := map[string]float64{}
	for _, m := range machines {
		common := fmt.Sprintf(`%s,instance="%s",node="%s"`, job, instance, m.name)
		version := m.version
		if version == "" {
			version = "v1.36.3"
		}
		out[`kube_node_info{`+common+`,provider_id="civo://`+m.name+`",kubelet_version="`+version+`",system_uuid="uuid-`+m.name+`",internal_ip="10.0.0.1"}`] = 1
		out[`kube_node_created{`+common+`}`] = float64(epoch.Add(-24 * time.Hour).Unix())
		out[`kube_node_role{`+common+`,role="worker"}`] = 1
		out[`kube_node_labels{`+common+m.labels+`}`] = 1
		cordoned := 0.0
		if m.cordoned {
			cordoned = 1
		}
		out[`kube_node_spec_unschedulable{`+common+`}`] = cordoned
		if m.taint != "" {
			out[`kube_node_spec_taint{`+common+`,key="`+m.taint+`",value="",effect="NoSchedule"}`] = 1
		}
		ready := m.ready
		if ready == "" {
			ready = "true"
		}
		for _, status := range []string{"true", "false", "unknown"} {
			out[`kube_node_status_condition{`+common+`,condition="Ready",status="`+status+`"}`] = is(status == ready)
			out[`kube_node_status_condition{`+common+`,condition="DiskPressure",status="`+status+`"}`] = is(status == "false")
		}
	}
	return out
}

func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// every calls do every 30 seconds, from and until in minutes.
func every(from, until float64, do func(when time.Time, minutes float64)) {
	for minutes := from; minutes < until; minutes += 0.5 {
		do(at(minutes), minutes)
	}
}

func openTSDB(t testing.TB, dir string, o history.Options) *history.Past {
	t.Helper()
	past, err := history.OpenTSDB(context.Background(), dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, past.Close()) })
	return past
}

func moments(t testing.TB, past *history.Past, from, until float64) []history.Moment {
	t.Helper()
	var out []history.Moment
	require.NoError(t, past.Moments(context.Background(), at(from), at(until), func(m history.Moment) error {
		out = append(out, m)
		return nil
	}))
	return out
}

func rulesOf(t testing.TB, text string) []history.RuleFile {
	t.Helper()
	path := t.TempDir() + "/rules.yaml"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	files, err := history.ReadRules(path)
	require.NoError(t, err)
	return files
}
