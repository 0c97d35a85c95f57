package kilo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/replicas"
	"drydock.dev/drydock/internal/text"
)

const turns = 3

// ask stops at the first server that has both kinds of results: the members' about each other, and
// other locations' about the members. Otherwise it uses the first server with any. If no server has
// results, the error gives the reason for each.
func (m *Mesh) ask(ctx context.Context, v view, location string) (results, error) {
	ctx, cancel := context.WithTimeout(ctx, turns*m.options.Timeout)
	defer cancel()
	var some *results
	var trouble []string
	for _, a := range m.inTurn(ctx, &trouble) {
		w, err := m.askOne(ctx, a, v, location)
		switch {
		case err != nil:
			trouble = append(trouble, fmt.Sprintf("querying Prometheus %s: %v", a, err))
		case w.none():
			trouble = append(trouble, fmt.Sprintf("Prometheus %s has no probe results about location %q in the last %s", a, clip(location), text.Duration(m.options.MaxAge)))
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
	return results{}, fmt.Errorf("%s; check that drydock-agent runs on the nodes, that Prometheus scrapes it, and that providers.kilo.prometheus names that Prometheus", named(trouble, "; "))
}

type replica struct {
	*replicas.Endpoint
	address string
}

func (r replica) String() string { return r.Name(r.address) }

// inTurn returns the address that answered last first. It adds errors of name resolution to
// trouble.
func (m *Mesh) inTurn(ctx context.Context, trouble *[]string) []replica {
	var out []replica
	for _, e := range m.endpoints {
		lookup, cancel := context.WithTimeout(ctx, m.options.Timeout)
		found, err := e.Addresses(lookup)
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

// The server computes the ages of the results, so Drydock's clock does not matter. A result counts
// only if the view has both Nodes, each in the right location.
func (m *Mesh) askOne(ctx context.Context, r replica, v view, location string) (results, error) {
	at, err := r.Replica(r.address) // a changed HTTP configuration file is used from now on
	if err != nil {
		return results{}, fmt.Errorf("reading the HTTP configuration: %w", err)
	}
	defer at.Close()
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	local, cross := newReader(v, location, true), newReader(v, location, false)
	asked := queries(m.options.Job, location, m.options.MaxAge)
	for i, e := range []*reader{local, cross} {
		if err := query(ctx, at.Client, r.URL().JoinPath("api/v1/query"), asked[i], e.read); err != nil {
			return results{}, errors.New(clip(at.Explain(ctx, err).Error()))
		}
	}
	w := newResults(local, cross, m.options.MaxAge)
	w.pairs = m.options.Pairs
	return w, nil
}

// queries request raw samples, because only these show which of two series of the same pair of
// nodes is newer. They are limited to the agents' jobs, because any scraped pod could export a
// metric of this name.
func queries(job, location string, maxAge time.Duration) [2]string {
	j, l := strconv.Quote(job), strconv.Quote(strings.ToValidUTF8(location, ""))
	return [2]string{
		fmt.Sprintf(`%s{job=~%s,path="local",src_location=%s,dst_location=%s}[%s]`, probeMetric, j, l, l, model.Duration(maxAge)),
		fmt.Sprintf(`%s{job=~%s,path="cross",dst_location=%s}[%s]`, probeMetric, j, l, model.Duration(freshFor)),
	}
}

func judge(req *http.Request, resp *http.Response) error {
	resp.Body = answers.Body(req.Context(), resp.Body)
	return nil
}
