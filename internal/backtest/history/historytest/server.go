package historytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Limits are the limits of a server, and hooks for tests.
type Limits struct {
	// Limits of points per series, of series per selector and of samples per query. 0 means
	// Prometheus' defaults (11,000 points, 50,000,000 samples) and no limit of series.
	Points, Series, Samples int
	// Before may answer a request in place of the server and then returns true. n counts the
	// queries from 1.
	Before   func(w http.ResponseWriter, r *http.Request, n int64) bool
	Warnings []string
	Asked    func(query string, from, until time.Time)
}

// Serve answers queries of the recording with Prometheus' own engine until the test ends. It
// returns the URL.
func (r *Recording) Serve() string { return r.ServeWithin(Limits{}) }

// ServeWithin is Serve with limits and hooks.
func (r *Recording) ServeWithin(l Limits) string {
	m := &memory{most: l.Series}
	for _, name := range slices.Sorted(maps.Keys(r.samples)) {
		one := &memorySeries{labels: Series(r.t, name)}
		for _, s := range r.samples[name] {
			one.samples = append(one.samples, point(s))
		}
		slices.SortStableFunc(one.samples, func(a, b point) int { return int(a.at - b.at) })
		m.series = append(m.series, one)
	}
	if l.Points == 0 {
		l.Points = 11_000
	}
	if l.Samples == 0 {
		l.Samples = 50_000_000
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: l.Samples, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
		EnableAtModifier: true, EnableNegativeOffset: true, NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
	})
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if l.Before != nil && l.Before(w, request, n.Add(1)) {
			return
		}
		if request.URL.Path != "/api/v1/query_range" {
			http.NotFound(w, request)
			return
		}
		from, until, step := instant(request.FormValue("start")), instant(request.FormValue("end")), instant(request.FormValue("step"))
		if (until-from)/step+1 > int64(l.Points) {
			refuse(w, http.StatusBadRequest, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
			return
		}
		asked, err := engine.NewRangeQuery(request.Context(), m, nil, request.FormValue("query"), time.UnixMilli(from), time.UnixMilli(until), time.Duration(step)*time.Millisecond)
		if err != nil {
			refuse(w, http.StatusBadRequest, "bad_data", err.Error())
			return
		}
		defer asked.Close()
		if l.Asked != nil {
			l.Asked(request.FormValue("query"), time.UnixMilli(from).UTC(), time.UnixMilli(until).UTC())
		}
		found, err := asked.Exec(request.Context()).Matrix()
		if err != nil {
			refuse(w, http.StatusUnprocessableEntity, "execution", err.Error())
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "warnings": l.Warnings, "data": map[string]any{"resultType": "matrix", "result": found}})
	}))
	r.t.Cleanup(server.Close)
	return server.URL
}

func instant(text string) int64 {
	seconds, _ := strconv.ParseFloat(text, 64)
	return int64(seconds*1000 + 0.5)
}

func refuse(w http.ResponseWriter, code int, kind, why string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "error", "errorType": kind, "error": why})
}

type memory struct {
	series []*memorySeries
	most   int
}

func (m *memory) Querier(int64, int64) (storage.Querier, error) { return querier{m}, nil }

type querier struct{ *memory }

var errNoNames = errors.New("this storage does not list names")

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoNames
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoNames
}

func (querier) Close() error { return nil }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	out := &found{}
	for _, s := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			out.all = append(out.all, s)
		}
	}
	if q.most > 0 && len(out.all) > q.most {
		return storage.ErrSeriesSet(fmt.Errorf("the query exceeded the maximum number of series (limit: %d series)", q.most))
	}
	slices.SortFunc(out.all, func(a, b *memorySeries) int { return labels.Compare(a.labels, b.labels) })
	return out
}

type found struct {
	all []*memorySeries
	at  int
}

func (s *found) Next() bool                      { s.at++; return s.at <= len(s.all) }
func (s *found) At() storage.Series              { return s.all[s.at-1] }
func (*found) Err() error                        { return nil }
func (*found) Warnings() annotations.Annotations { return nil }

type memorySeries struct {
	labels  labels.Labels
	samples points
}

func (s *memorySeries) Labels() labels.Labels { return s.labels }

func (s *memorySeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(s.samples)
}

type points []point

func (p points) Len() int                { return len(p) }
func (p points) Get(i int) chunks.Sample { return p[i] }

type point struct {
	at int64
	v  float64
}

func (p point) T() int64                    { return p.at }
func (p point) F() float64                  { return p.v }
func (point) ST() int64                     { return 0 }
func (point) H() *histogram.Histogram       { return nil }
func (point) FH() *histogram.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample         { return p }
