// Package historytest makes recordings of a Prometheus and serves them, for tests.
package historytest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// Epoch is when recordings begin.
var Epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// At returns the time that is this number of minutes after Epoch.
func At(minutes float64) time.Time { return Epoch.Add(time.Duration(minutes * float64(time.Minute))) }

// Recording has the samples that Prometheus would store from scrapes of kube-state-metrics.
type Recording struct {
	t       testing.TB
	samples map[string][]sample
	last    map[string]map[string]float64 // by target
}

type sample struct {
	at int64
	v  float64
}

// New returns a recording without samples.
func New(t testing.TB) *Recording {
	return &Recording{t: t, samples: map[string][]sample{}, last: map[string]map[string]float64{}}
}

// Scrape stores the series of one scrape. A series of the previous scrape that is missing now gets
// a staleness marker. If shows is empty, the target is down.
func (r *Recording) Scrape(when time.Time, target string, shows map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(r.last[target])) {
		if _, still := shows[name]; !still {
			r.Add(name, when, math.Float64frombits(value.StaleNaN))
		}
	}
	for name, v := range shows {
		r.Add(name, when, v)
	}
	r.last[target] = maps.Clone(shows)
}

// Add stores one sample.
func (r *Recording) Add(series string, when time.Time, v float64) {
	r.samples[series] = append(r.samples[series], sample{when.UnixMilli(), v})
}

// Unmarked returns the recording without staleness markers.
func (r *Recording) Unmarked() *Recording {
	out := New(r.t)
	for name, samples := range r.samples {
		out.samples[name] = slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return value.IsStaleNaN(s.v) })
	}
	return out
}

// OpenMetrics returns the recording in the OpenMetrics format, without staleness markers. promtool
// makes a TSDB from it.
func (r *Recording) OpenMetrics() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.samples)) {
		for _, s := range r.samples[name] {
			if !value.IsStaleNaN(s.v) {
				fmt.Fprintf(&out, "%s %v %.3f\n", name, s.v, float64(s.at)/1000)
			}
		}
	}
	return out.String() + "# EOF\n"
}

// Series parses the labels of a series.
func Series(t testing.TB, name string) labels.Labels {
	t.Helper()
	lset, err := parser.NewParser(parser.Options{}).ParseMetric(name)
	require.NoError(t, err, name)
	return lset
}

// Machine is a Node as kube-state-metrics shows it.
type Machine struct {
	Name     string
	Ready    string // true, false, unknown
	Cordoned bool
	Version  string
	Labels   string // further labels of kube_node_labels, each after a comma
	Taint    string
	Role     string    // empty: worker
	Created  time.Time // zero: a day before the Epoch
}

const job = `job="kube-state-metrics"`

// KubeStateMetrics returns the series of the kube-state-metrics instance, with their values.
func KubeStateMetrics(instance string, Machines ...Machine) map[string]float64 {
	out := map[string]float64{}
	for _, m := range Machines {
		common := fmt.Sprintf(`%s,instance="%s",node="%s"`, job, instance, m.Name)
		version := m.Version
		if version == "" {
			version = "v1.36.3"
		}
		out[`kube_node_info{`+common+`,provider_id="civo://`+m.Name+`",kubelet_version="`+version+`",system_uuid="uuid-`+m.Name+`",internal_ip="10.0.0.1"}`] = 1
		created := m.Created
		if created.IsZero() {
			created = Epoch.Add(-24 * time.Hour)
		}
		out[`kube_node_created{`+common+`}`] = float64(created.Unix())
		role := m.Role
		if role == "" {
			role = "worker"
		}
		out[`kube_node_role{`+common+`,role="`+role+`"}`] = 1
		out[`kube_node_labels{`+common+m.Labels+`}`] = 1
		cordoned := 0.0
		if m.Cordoned {
			cordoned = 1
		}
		out[`kube_node_spec_unschedulable{`+common+`}`] = cordoned
		if m.Taint != "" {
			out[`kube_node_spec_taint{`+common+`,key="`+m.Taint+`",value="",effect="NoSchedule"}`] = 1
		}
		ready := m.Ready
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

// Every calls do for every 30 seconds of a period. from and until are in minutes after Epoch.
func Every(from, until float64, do func(when time.Time, minutes float64)) {
	for minutes := from; minutes < until; minutes += 0.5 {
		do(At(minutes), minutes)
	}
}
