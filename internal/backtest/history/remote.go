package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"drydock.dev/drydock/internal/redact"
)

// remote reads the samples of a Prometheus server over its API, as they are stored, with their staleness markers: by
// /api/v1/read. Its other queries leave the markers out, so that the end of a series would be seen minutes late.
//
// Prometheus sends the chunks of its store as they are, which takes it and this program a fraction of the processor time and memory that
// single samples take. Other servers that answer this API may have samples alone.
type remote struct {
	url    string
	shown  string // the URL without its password
	client *http.Client
	drop   string // the label that is dropped
	skip   func(Skip)
	once   sync.Once   // skip names histograms once
	chunks atomic.Bool // the server sends chunks
	// secrets are what proves to the server who asks. No text shows them.
	secrets redact.Keyring
}

func newRemote(server string, client *http.Client, drop string, skip func(Skip)) (*remote, error) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Host == "" {
		return nil, errors.New("the address of Prometheus is no URL as http://HOST:PORT") // it may have a password
	}
	parsed = parsed.JoinPath("api", "v1", "read")
	return &remote{url: parsed.String(), shown: parsed.Redacted(), client: client, drop: drop, skip: skip, secrets: redact.Keyring{Mark: "[secret]"}}, nil
}

func (r *remote) Querier(from, until int64) (storage.Querier, error) {
	return remoteQuerier{r, from, until}, nil
}

type remoteQuerier struct {
	*remote
	from, until int64
}

var errNoLabels = errors.New("a past that is read over the API is not asked for its labels")

func (remoteQuerier) LabelValues(
	context.Context, string, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoLabels
}

func (remoteQuerier) LabelNames(
	context.Context, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoLabels
}

func (remoteQuerier) Close() error { return nil }

func (q remoteQuerier) Select(
	ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	from, until := q.from, q.until
	if hints != nil {
		from, until = max(from, hints.Start), min(until, hints.End)
	}
	found, err := q.read(ctx, from, until, matchers)
	if err != nil {
		return storage.ErrSeriesSet(fmt.Errorf("reading from Prometheus at %s: %w", q.shown, err))
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &remoteSet{all: merged(found)}
}

func (r *remote) read(ctx context.Context, from, until int64, matchers []*labels.Matcher) ([]storage.Series, error) {
	query := &prompb.Query{StartTimestampMs: from, EndTimestampMs: until}
	for _, m := range matchers {
		query.Matchers = append(query.Matchers, &prompb.LabelMatcher{Type: matcherType(m.Type), Name: m.Name, Value: m.Value})
	}
	asked, err := (&prompb.ReadRequest{
		Queries:               []*prompb.Query{query},
		AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS, prompb.ReadRequest_SAMPLES},
	}).Marshal()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(r.secrets.Trace(ctx), http.MethodPost, r.url, bytes.NewReader(snappy.Encode(nil, asked)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("X-Prometheus-Remote-Read-Version", "0.1.0")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("it answered %d %s: %s", response.StatusCode, http.StatusText(response.StatusCode), r.secrets.Text(string(why)))
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/x-streamed-protobuf") {
		r.chunks.Store(true)
		return readChunks(response.Body, r.drop)
	}
	return r.samples(response.Body)
}

// samples reads an answer that has samples.
func (r *remote) samples(body io.Reader) ([]storage.Series, error) {
	packed, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	text, err := snappy.Decode(nil, packed)
	if err != nil {
		return nil, err
	}
	var answer prompb.ReadResponse
	if err := answer.Unmarshal(text); err != nil {
		return nil, err
	}
	var out []storage.Series
	builder := labels.NewScratchBuilder(16)
	for _, result := range answer.Results {
		for _, s := range result.Timeseries {
			if len(s.Histograms) > 0 {
				r.once.Do(func() {
					r.skip(Skip{What: "native histograms", Why: "this server sends none over the API; they are read from a TSDB folder"})
				})
			}
			out = append(out, &remoteSeries{labelsOf(&builder, s.Labels, r.drop), s})
		}
	}
	return out, nil
}

func labelsOf(builder *labels.ScratchBuilder, of []prompb.Label, drop string) labels.Labels {
	builder.Reset()
	for _, l := range of {
		if l.Name != drop {
			builder.Add(l.Name, l.Value)
		}
	}
	builder.Sort()
	return builder.Labels()
}

// merged makes one of sorted series that have the same labels: those of several replicas, where one server answers for all.
func merged(all []storage.Series) (out []storage.Series) {
	for first := 0; first < len(all); {
		next := first + 1
		for next < len(all) && labels.Equal(all[first].Labels(), all[next].Labels()) {
			next++
		}
		if same := all[first:next]; len(same) > 1 {
			out = append(out, storage.ChainedSeriesMerge(same...))
		} else {
			out = append(out, same[0])
		}
		first = next
	}
	return out
}

func matcherType(of labels.MatchType) prompb.LabelMatcher_Type {
	switch of {
	case labels.MatchNotEqual:
		return prompb.LabelMatcher_NEQ
	case labels.MatchRegexp:
		return prompb.LabelMatcher_RE
	case labels.MatchNotRegexp:
		return prompb.LabelMatcher_NRE
	default:
		return prompb.LabelMatcher_EQ
	}
}

type remoteSeries struct {
	labels labels.Labels
	*prompb.TimeSeries
}

func (s *remoteSeries) Labels() labels.Labels { return s.labels }

func (s *remoteSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(remoteSamples(s.Samples))
}

type remoteSamples []prompb.Sample

func (s remoteSamples) Len() int                { return len(s) }
func (s remoteSamples) Get(i int) chunks.Sample { return (*remoteSample)(&s[i]) }

type remoteSample prompb.Sample

func (s *remoteSample) T() int64                    { return s.Timestamp }
func (s *remoteSample) F() float64                  { return s.Value }
func (*remoteSample) ST() int64                     { return 0 }
func (*remoteSample) H() *histogram.Histogram       { return nil }
func (*remoteSample) FH() *histogram.FloatHistogram { return nil }
func (*remoteSample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s *remoteSample) Copy() chunks.Sample         { c := *s; return &c }

// remoteSet is one answer.
type remoteSet struct {
	all []storage.Series
	at  int
}

func (s *remoteSet) Next() bool                      { s.at++; return s.at <= len(s.all) }
func (s *remoteSet) At() storage.Series              { return s.all[s.at-1] }
func (*remoteSet) Err() error                        { return nil }
func (*remoteSet) Warnings() annotations.Annotations { return nil }
