package history

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

const together = 4

// Past is a Source that reads from a server with the API of Prometheus.
type Past struct {
	options Options
	book    *rulebook
	server  *server
	state   *state

	mu      sync.Mutex
	skipped []Skip
	// The answers that are not in the state file yet. Those for a span shorter than the full length
	// (whole is false) are not kept, because a later run would not send the same queries.
	pending []pack
	whole   bool
	start   int64

	fleet    *fleet
	rules    []*rule
	nodes    map[string]*corev1.Node // as in the last moment
	alerts   map[string]Alert        // the firing alerts in the last moment
	silenced map[string]bool         // the nodes with a silence
	dark     bool                    // the time is in a gap
	gap      *Moment                 // the changes that will be yielded at the end of the current gap
	before   Moment                  // the state when the current gap began
}

type pack struct {
	key [sha256.Size]byte
	of  []series
}

// OpenPrometheus returns a Past that reads from the server at the address. transport is nil without
// HTTP settings.
func OpenPrometheus(address string, transport http.RoundTripper, o Options) (*Past, error) {
	o, book, err := o.complete()
	if err != nil {
		return nil, err
	}
	asks, err := newClient(address, transport)
	if err != nil {
		return nil, err
	}
	p := &Past{options: o, book: book, server: &server{client: asks, drop: model.LabelName(o.ReplicaLabel), wait: sleep}}
	if o.State != "" {
		p.state, err = openState(o.State, o.ExternalLabels.String())
	}
	return p, err
}

// Close closes the state file.
func (p *Past) Close() error { return p.state.close() }

func (p *Past) skip(s Skip) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.skipped, s) {
		p.skipped = append(p.skipped, s)
	}
}

// Skipped implements Source.
func (p *Past) Skipped() []Skip {
	p.mu.Lock()
	all := slices.Concat(p.skipped, p.book.skip())
	p.mu.Unlock()
	for _, r := range p.rules {
		if r.failed != nil {
			all = append(all, *r.failed)
		}
	}
	return slices.SortedFunc(slices.Values(all), func(a, b Skip) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.What, b.What), a.Until.Compare(b.Until), cmp.Compare(a.Why, b.Why))
	})
}

func (p *Past) ask(ctx context.Context, q question, from, until, step int64) ([]series, error) {
	if p.state == nil || !p.whole {
		return p.server.get(ctx, q, from, until, step)
	}
	key := stateKey(q, from, until, step)
	if found, known, err := p.state.get(key); known || err != nil {
		return found, err
	}
	found, err := p.server.get(ctx, q, from, until, step)
	if err == nil {
		p.mu.Lock()
		p.pending = append(p.pending, pack{key, found})
		p.mu.Unlock()
	}
	return found, err
}

// If kube-state-metrics showed no Nodes at the end of the span, more data of the span may still
// arrive, so the answers are dropped.
func (p *Past) keep() error {
	for _, one := range p.pending {
		if !p.whole || len(p.fleet.shows) == 0 {
			break
		}
		if err := p.state.put(one.key, one.of); err != nil {
			return err
		}
	}
	p.pending = nil
	return nil
}

func (p *Past) begin() {
	p.skipped, p.pending, p.fleet = nil, nil, newFleet(p.options)
	p.nodes, p.alerts, p.silenced, p.gap, p.dark = map[string]*corev1.Node{}, map[string]Alert{}, map[string]bool{}, nil, true
	p.rules = nil
	if p.options.Recorded {
		p.rules = []*rule{recordedAlerts(p.options)}
	}
	p.rules = append(p.rules, recordedSilences(p.options))
	for _, r := range p.book.rules {
		one := *r
		one.active = map[string]*active{}
		p.rules = append(p.rules, &one)
	}
}

// Moments implements Source.
func (p *Past) Moments(ctx context.Context, from, until time.Time, yield func(Moment) error) error {
	from, until = from.UTC().Truncate(time.Millisecond), until.UTC().Truncate(time.Millisecond)
	if !from.Before(until) {
		return errors.New("the time range is empty: its end is not after its beginning")
	}
	p.begin()
	// Each series that exists at from has a sample within one lookback. Rules are evaluated from an
	// even earlier time, because an alert may already be pending.
	start := from.Add(-p.options.Lookback)
	for _, r := range p.rules {
		if sooner := from.Add(-r.warmUp()); !p.options.Recorded && sooner.Before(start) {
			start = sooner
		}
	}
	read := func(at time.Time) {
		if p.options.Progress != nil {
			p.options.Progress(max(0, at.Sub(from)), until.Sub(from))
		}
	}
	read(from)
	if err := p.missing(ctx, from, until); err != nil {
		return err
	}
	begun := false
	first := func() error {
		begun = true
		if p.dark {
			p.gap, p.before = &Moment{}, p.all(from)
			return nil
		}
		return yield(p.all(from))
	}
	step, span := p.options.Step.Milliseconds(), p.options.span.Milliseconds()
	span = max(step, span-span%step)
	end := ceil(until.UnixMilli(), step)
	p.start = start.UnixMilli() - start.UnixMilli()%step
	for at := p.start; at < end; {
		next := min(end, at-at%span+span)
		if begins := ceil(from.UnixMilli(), step); at < begins { // the data may begin within this span
			next = min(next, begins)
		}
		p.whole = at%span == 0 && next%span == 0 && at != p.start
		err := p.span(ctx, at, next, func(m Moment, ended bool) error {
			switch {
			case !m.At.Before(until):
				return nil
			case !begun && m.At.After(from):
				if err := first(); err != nil {
					return err
				}
			}
			if !begun {
				p.dark = (p.dark || m.Gap != nil) && !ended
				p.know(m)
				return nil
			}
			return p.emit(m, ended, yield)
		})
		if err != nil {
			return err
		}
		if at = next; at > from.UnixMilli() {
			read(time.UnixMilli(min(at, until.UnixMilli())))
		}
	}
	if !begun {
		if err := first(); err != nil {
			return err
		}
	}
	if p.gap != nil {
		return yield(p.gapUntil(until))
	}
	return nil
}

const whyGap = "there is no data of kube-state-metrics"

// The interval is [from, until), in ms. ended reports that a gap in the data ended at that time.
func (p *Past) span(ctx context.Context, from, until int64, each func(m Moment, ended bool) error) error {
	nodes, err := p.fleet.run(ctx, p, from, until)
	if err != nil {
		return err
	}
	work, within := errgroup.WithContext(ctx)
	work.SetLimit(together)
	found := make([][]alertChange, len(p.rules))
	for i, r := range p.rules {
		work.Go(func() (err error) {
			found[i], err = r.run(within, p, from, until)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	if err := p.keep(); err != nil {
		return err
	}
	alerts := slices.Concat(found...)
	slices.SortStableFunc(alerts, func(a, b alertChange) int { return cmp.Compare(a.at, b.at) })
	for len(nodes)+len(alerts) > 0 {
		if err := each(take(&nodes, &alerts)); err != nil {
			return err
		}
	}
	return nil
}
