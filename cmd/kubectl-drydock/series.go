package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/report"
)

const (
	// mostSamples is the limit of samples per series. Prometheus returns at most 11,000.
	mostSamples = 10800
	// finest is the shortest interval between two samples.
	finest    = 30 * time.Second
	askWithin = time.Minute
)

// seriesOptions say which Prometheus scrapes Drydock. label is LABEL=VALUE, which only this
// cluster's series have. matcher is the same label in PromQL.
type seriesOptions struct {
	address, label string
	matcher        string
}

func (o *seriesOptions) check() error {
	if o.label != "" {
		name, value, ok := strings.Cut(o.label, "=")
		if !ok || !model.LegacyValidation.IsValidLabelName(name) {
			return cli.Usagef("--prometheus-label is %q; write LABEL=VALUE, for example cluster=prod-1", o.label)
		}
		if o.address == "" {
			return cli.Usagef("--prometheus-label needs --prometheus")
		}
		o.matcher = name + "=" + strconv.Quote(value)
	}
	if o.address == "" {
		return nil
	}
	u, err := url.Parse(o.address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return cli.Usagef("--prometheus is not the URL of a Prometheus; write a URL, for example http://localhost:9090")
	}
	return nil
}

func (o *seriesOptions) read(ctx context.Context, from, to time.Time) (*report.Series, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{}
	}
	transport = transport.Clone()
	defer transport.CloseIdleConnections()
	c, err := api.NewClient(api.Config{Address: o.address, RoundTripper: boundedTransport{transport}})
	if err != nil {
		return nil, err
	}
	asked := promv1.NewAPI(c)
	if err := o.one(ctx, asked, from, to); err != nil {
		return nil, err
	}
	s := &report.Series{Step: step(to.Sub(from)), Open: map[string][]report.Sample{}}
	leading := fmt.Sprintf(`sum(max by (policy, phase) (%s)) or 0 * max(%s == 1)`, o.of("drydock_repairs_in_progress", `phase=~"Acting|Verifying"`), o.of("drydock_leader"))
	for query, take := range map[string]func(*model.SampleStream){
		leading: func(m *model.SampleStream) { s.InFlight = samples(m) },
		fmt.Sprintf(`max by (policy, reason) (%s) > 0`, o.of("drydock_holds")): func(m *model.SampleStream) {
			s.Holds = append(s.Holds, report.HoldSeries{Policy: string(m.Metric["policy"]), Reason: string(m.Metric["reason"]), Samples: samples(m)})
		},
		fmt.Sprintf(`max by (scope) (%s) == 1`, o.of("drydock_breaker_state", `state="open"`)): func(m *model.SampleStream) {
			s.Open[string(m.Metric["scope"])] = samples(m)
		},
	} {
		within, cancel := context.WithTimeout(ctx, askWithin)
		value, warnings, _, err := asked.QueryRange(within, query, promv1.Range{Start: from, End: to, Step: s.Step})
		cancel()
		if err != nil {
			return nil, fmt.Errorf("the query %s failed: %w", query, err)
		}
		if len(warnings) > 0 {
			return nil, fmt.Errorf("the answer may be incomplete: %s", strings.Join(warnings, "; "))
		}
		matrix, ok := value.(model.Matrix)
		if !ok {
			return nil, fmt.Errorf("the answer to %s is %T and not a matrix; check that this is the address of a Prometheus", query, value)
		}
		for _, m := range matrix {
			take(m)
		}
	}
	if len(s.InFlight) == 0 {
		return nil, fmt.Errorf("no sample of a leading Drydock in this time; check that this Prometheus scrapes Drydock's metrics")
	}
	return s, nil
}

// boundedTransport bounds the size of a decoded answer. The series of a report have about 100,000
// samples.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = bounded.Limits{Bytes: 32 << 20, Values: 2_000_000, Depth: 16}.Body(req.Context(), resp.Body)
	}
	return resp, err
}

// one checks that all series come from the Drydock of one cluster: adding up the series of several
// clusters would give wrong numbers.
func (o *seriesOptions) one(ctx context.Context, asked promv1.API, from, to time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	value, _, _, err := asked.Query(ctx, fmt.Sprintf(`group by (cluster) (max_over_time(%s[%s]))`, o.of("drydock_leader"), model.Duration(to.Sub(from))), to)
	if err != nil {
		return fmt.Errorf("asking Prometheus which Drydock it scrapes: %w", err)
	}
	clusters, _ := value.(model.Vector)
	if len(clusters) <= 1 {
		return nil
	}
	var names []string
	for _, c := range clusters {
		names = append(names, strconv.Quote(string(c.Metric["cluster"])))
	}
	slices.Sort(names)
	return fmt.Errorf("there are samples of Drydock in several clusters (label cluster: %s); name this cluster with --prometheus-label cluster=NAME", strings.Join(names, ", "))
}

func (o *seriesOptions) of(metric string, matchers ...string) string {
	if o.matcher != "" {
		matchers = append(matchers, o.matcher)
	}
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

// step keeps a series below mostSamples.
func step(length time.Duration) time.Duration {
	return max(finest, (length/mostSamples + finest - 1).Truncate(finest))
}

func samples(m *model.SampleStream) []report.Sample {
	out := make([]report.Sample, len(m.Values))
	for i, v := range m.Values {
		out[i] = report.Sample{At: v.Timestamp.Time(), Value: float64(v.Value)}
	}
	return out
}
