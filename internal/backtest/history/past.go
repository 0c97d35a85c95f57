package history

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/storage"
	corev1 "k8s.io/api/core/v1"
)

const (
	// chunk is how much is read at once: a block of Prometheus, of which the rules read again what they look back on.
	chunk = 2 * time.Hour
	// chunkOfSamples is how much is read at once from a server that sends samples, which take ten times the memory.
	chunkOfSamples = 30 * time.Minute
)

// Past is a Source. A call of Moments that begins where the last one ended goes on from there: together they give what one
// call gives for both times. Any other call begins anew.
type Past struct {
	options Options
	rules   *rulebook
	data    storage.Queryable
	closing func() error
	passed  func(before int64) error // nothing before that time is read again, as long as the reading goes on
	chunk   func() time.Duration     // how much is read at once

	mu      sync.Mutex
	skipped []Skip

	until time.Time // where the last call ended
	*reading
}

// reading is how far the past has been read.
type reading struct {
	fleet     *fleet
	evaluator *evaluator
	recorded  *recorded
	seen      *seen

	nodes  map[string]*corev1.Node // as given last
	alerts map[string]Alert        // that fire, as given last
	gap    *Moment                 // what changes at the end of the gap that there is now
	before Moment                  // what is given when this gap began
}

// OpenTSDB opens a TSDB folder of Prometheus: a snapshot, or a data folder, also of a running Prometheus. It writes nothing
// to it.
func OpenTSDB(ctx context.Context, dir string, o Options) (*Past, error) {
	o, rules, err := o.complete()
	if err != nil {
		return nil, err
	}
	p := &Past{options: o, rules: rules, chunk: func() time.Duration { return chunk }}
	f, err := openFolder(ctx, dir, rules.metrics(), p.skip)
	if err != nil {
		return nil, err
	}
	p.data, p.closing, p.passed = f, f.close, f.passed
	return p, nil
}

// OpenPrometheus reads from a running Prometheus, by its API for remote reading.
func OpenPrometheus(url string, client *http.Client, o Options) (*Past, error) {
	o, rules, err := o.complete()
	if err != nil {
		return nil, err
	}
	p := &Past{options: o, rules: rules, closing: func() error { return nil }, passed: func(int64) error { return nil }}
	server, err := newRemote(url, client, o.ReplicaLabel, p.skip)
	if err != nil {
		return nil, err
	}
	p.data, p.chunk = server, func() time.Duration {
		if server.chunks.Load() {
			return chunk
		}
		return chunkOfSamples
	}
	return p, nil
}

// Close frees what the past is read from. The moments stay valid.
func (p *Past) Close() error {
	err := p.end()
	return errors.Join(err, p.closing())
}

func (p *Past) skip(s Skip) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.skipped, s) {
		p.skipped = append(p.skipped, s)
	}
}

// Skipped is part of Source.
func (p *Past) Skipped() []Skip {
	p.mu.Lock()
	all := slices.Clone(p.skipped)
	p.mu.Unlock()
	all = append(all, p.rules.skip()...)
	if p.reading != nil {
		all = append(all, p.fleet.missing()...)
		if p.evaluator != nil {
			all = append(all, p.evaluator.failing()...)
			all = append(all, p.seen.missing(p.evaluator)...)
		}
	}
	return slices.SortedFunc(slices.Values(all), func(a, b Skip) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.What, b.What), a.Until.Compare(b.Until), cmp.Compare(a.Why, b.Why))
	})
}

// begin starts reading anew.
func (p *Past) begin() error {
	if err := p.end(); err != nil {
		return err
	}
	r := &reading{nodes: map[string]*corev1.Node{}, alerts: map[string]Alert{}, fleet: newFleet(p.options, p.skip)}
	r.seen = &seen{Queryable: p.data, metrics: map[string]bool{}}
	if p.options.Recorded {
		r.recorded = newRecorded(p.options, p.skip)
		p.reading = r
		return nil
	}
	evaluator, err := newEvaluator(p.rules, p.options, r.seen, p.skip)
	if err != nil {
		return err
	}
	r.evaluator = evaluator
	p.reading = r
	return nil
}

func (p *Past) end() error {
	if p.reading == nil || p.evaluator == nil {
		return nil
	}
	evaluator := p.evaluator
	p.reading = nil
	return evaluator.close()
}
