package kilo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// turns bounds how long all are asked together, in timeouts of one.
const turns = 3

// ask asks one Prometheus after the other what the agents said of the location, until one has both what its members said
// of each other and what other locations said of them. Of those that know less, the first that knows anything counts; an
// error says of each why it knows nothing.
func (m *Mesh) ask(ctx context.Context, location string) (words, error) {
	ctx, cancel := context.WithTimeout(ctx, turns*m.options.Timeout)
	defer cancel()
	var some *words
	var trouble []string
	for _, a := range m.inTurn(ctx, &trouble) {
		w, err := m.askOne(ctx, a, location)
		switch {
		case err != nil:
			trouble = append(trouble, fmt.Sprintf("asking Prometheus %s: %v", a, err))
		case w.none():
			trouble = append(trouble, fmt.Sprintf("Prometheus %s has no word of the agents about location %q in the last %s", a, clip(location), model.Duration(m.options.MaxAge)))
		case len(w.local) > 0 && len(w.cross) > 0:
			m.last = a.String()
			return w, nil
		case some == nil:
			some = &w
		}
		if ctx.Err() != nil {
			break
		}
	}
	if some != nil {
		return *some, nil
	}
	return words{}, fmt.Errorf("%s; check that drydock-agent runs on the nodes, that Prometheus scrapes it, and that providers.kilo.prometheus names that Prometheus", named(trouble, "; "))
}

// replica is one address of one Prometheus.
type replica struct {
	*endpointOf
	address string
}

func (r replica) String() string { return r.at(r.address) }

// inTurn are all of them, the one first that answered last.
func (m *Mesh) inTurn(ctx context.Context, trouble *[]string) []replica {
	var out []replica
	for _, e := range m.endpoints {
		lookup, cancel := context.WithTimeout(ctx, m.options.Timeout)
		found, err := e.addresses(lookup, m.options.Resolver)
		cancel()
		if err != nil {
			*trouble = append(*trouble, err.Error())
		}
		for _, a := range found {
			out = append(out, replica{e, a})
		}
	}
	slices.SortStableFunc(out, func(a, b replica) int { return compareBool(b.String() == m.last, a.String() == m.last) })
	return out
}

// askOne asks both questions of one. Its clock decides what is old: an answer needs no agreement of clocks.
func (m *Mesh) askOne(ctx context.Context, r replica, location string) (words, error) {
	client, err := r.client(r.address)
	if err != nil {
		return words{}, fmt.Errorf("reading the HTTP configuration: %w", err)
	}
	defer client.CloseIdleConnections()
	prometheus, err := api.NewClient(api.Config{Address: r.url.String(), Client: client})
	if err != nil {
		return words{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	var answers [2]model.Matrix
	for i, query := range queries(m.options.Job, location, m.options.MaxAge) {
		value, warnings, _, err := promv1.NewAPI(prometheus).Query(ctx, query, time.Time{})
		if err != nil {
			return words{}, explain(ctx, err, m.options.Timeout)
		}
		if len(warnings) > 0 { // what is missing might be what speaks against a candidate
			return words{}, fmt.Errorf("its answer may not be whole: %s", clip(strings.Join(warnings, "; ")))
		}
		matrix, ok := value.(model.Matrix)
		if !ok {
			return words{}, fmt.Errorf("its answer is %T, where a matrix was asked for; check that this is a Prometheus", value)
		}
		answers[i] = matrix
	}
	return newWords(answers[0], answers[1], location, m.options.MaxAge), nil
}

// queries are for the raw samples: only they tell which of two series of one pair spoke last. Other jobs than the agents'
// are not asked for: any pod that is scraped can export a metric of this name.
func queries(job, location string, maxAge time.Duration) [2]string {
	j, l := strconv.Quote(job), strconv.Quote(strings.ToValidUTF8(location, ""))
	return [2]string{
		fmt.Sprintf(`%s{job=~%s,path="local",src_location=%s,dst_location=%s}[%s]`, probeMetric, j, l, l, model.Duration(maxAge)),
		fmt.Sprintf(`%s{job=~%s,path="cross",dst_location=%s}[%s]`, probeMetric, j, l, model.Duration(freshFor)),
	}
}

// explain drops the request's own URL, since the sentence names it, and says a timeout in words.
func explain(ctx context.Context, err error, timeout time.Duration) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var said *promv1.Error
	if errors.As(err, &said) {
		err = errors.New(said.Msg)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no whole answer within %s: %w", timeout, context.DeadlineExceeded)
	}
	return errors.New(clip(err.Error()))
}

// bounded lets no redirect pass, and of an answer only what makes sense.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("it answered %d %s, and redirects are not followed", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxAnswerBytes}
	return resp, nil
}

// CloseIdleConnections lets http.Client reach the connections below.
func (b bounded) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// limitedBody fails, instead of ending, where a body goes on beyond its limit: what is cut short must not look whole.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 { // one more, to tell an end from an excess
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, errTooLarge
	}
	return n, err
}
