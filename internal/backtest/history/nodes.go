package history

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

// After the first query of all series, only changes are queried: series that are new at a step, and
// series whose value differs from one step before.
//
// A Node was deleted if its kube-state-metrics still shows other Nodes but not this one, or if a
// new kube-state-metrics has run for Options.Lookback and does not show it. If no
// kube-state-metrics shows any Node, there is a gap.
type fleet struct {
	options Options
	nodes   map[string]*nodePast
	shows   map[string]bool // the instances of kube-state-metrics that show Nodes
	gap     bool
	// The times, in ms, at which all Nodes are queried again: Options.Lookback after the first
	// sample of a new kube-state-metrics.
	checks []int64
	labels map[string]string // the names of Node labels, by the names that kube-state-metrics gives them
}

type nodeChange struct {
	at    int64
	nodes []*corev1.Node
	gone  []string
	began bool // a gap begins
	ended bool // a gap ends
}

func newFleet(o Options) *fleet {
	f := &fleet{options: o, nodes: map[string]*nodePast{}, gap: true, labels: map[string]string{}}
	for _, name := range o.NodeLabels {
		f.labels[sanitized(name)] = name
	}
	return f
}

// A series about a node appears, ends, or has a new value.
type event struct {
	at    int64
	fact  *fact
	of    model.LabelSet
	value float64
}

// The interval is [from, until), in ms and in multiples of the step.
func (f *fleet) run(ctx context.Context, p *Past, from, until int64) ([]nodeChange, error) {
	step := f.options.Step.Milliseconds()
	last := until - step
	if from > last {
		return nil, nil
	}
	facts := f.facts()
	began := make([][]series, len(facts))
	found := make([][]series, len(facts))
	shown, err := p.ask(ctx, f.shown(), from, last, step)
	if err != nil {
		return nil, err
	}
	by, none, err := f.moved(ctx, p, shown, from, last)
	if err != nil {
		return nil, err
	}
	work, within := errgroup.WithContext(ctx)
	work.SetLimit(together)
	for i := range facts {
		first := from
		if from == p.start {
			first += step
			work.Go(func() (err error) {
				if facts[i].whole != nil {
					began[i], err = p.ask(within, facts[i].question(facts[i].whole, "all of ", ""), from, from, step)
				}
				return err
			})
		}
		if none {
			continue
		}
		work.Go(func() (err error) {
			found[i], err = p.ask(within, facts[i].question(facts[i].changes, "changes of ", by), first, last, step)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	var events []event
	for i := range facts {
		for _, s := range slices.Concat(began[i], found[i]) {
			for _, r := range s.Runs {
				for at := r.From; at <= r.Until; at += step {
					events = append(events, event{at, &facts[i], s.Labels, r.Value})
				}
			}
		}
	}
	gaps := f.seen(shown, from, last)
	checked, err := f.check(ctx, p, facts, until)
	if err != nil {
		return nil, err
	}
	events = append(events, checked...)
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) }) // events at the same time stay in the order of facts
	return f.settle(events, gaps), nil
}

func (f *fleet) seen(shown []series, from, last int64) (gaps []nodeChange) {
	step, lookback := f.options.Step.Milliseconds(), f.options.Lookback.Milliseconds()
	all := &series{}
	was := f.shows
	f.shows = map[string]bool{}
	for _, s := range shown {
		key := s.Labels.String()
		for _, r := range s.Runs {
			all.Runs = append(all.Runs, run{r.From, r.Until, 1})
			if r.From > from || was != nil && !was[key] {
				f.checks = append(f.checks, ceil(r.From+lookback, step))
			}
			f.shows[key] = r.Until == last
		}
	}
	maps.DeleteFunc(f.shows, func(_ string, is bool) bool { return !is })
	if len(all.Runs) > 0 {
		all.merge(&answer{step: step})
	}
	at := from
	for _, r := range all.Runs {
		if r.From > at && !f.gap {
			gaps = append(gaps, nodeChange{at: at, began: true})
			f.gap = true
		}
		if f.gap {
			gaps = append(gaps, nodeChange{at: r.From, ended: true})
			f.gap = false
		}
		at = r.Until + step
	}
	if at <= last && !f.gap {
		gaps = append(gaps, nodeChange{at: at, began: true})
		f.gap = true
	}
	return gaps
}

// The events remove from the fleet what the server no longer shows.
func (f *fleet) check(ctx context.Context, p *Past, facts []fact, until int64) (out []event, err error) {
	slices.Sort(f.checks)
	f.checks = slices.Compact(f.checks)
	for len(f.checks) > 0 && f.checks[0] < until {
		at := f.checks[0]
		f.checks = f.checks[1:]
		for i := range facts {
			if facts[i].missing == nil {
				continue
			}
			found, err := p.ask(ctx, facts[i].question(facts[i].whole, "all of ", ""), at, at, f.options.Step.Milliseconds())
			if err != nil {
				return nil, err
			}
			if len(found) == 0 && facts[i].name == metricInfo {
				break // another gap begins
			}
			missing := facts[i].missing
			out = append(out, event{at: at, fact: &fact{apply: func(f *fleet, _ event) []string { return missing(f, found) }}})
		}
	}
	return out, nil
}

func (f *fleet) settle(events []event, gaps []nodeChange) (out []nodeChange) {
	for len(events) > 0 || len(gaps) > 0 {
		var change nodeChange
		if len(gaps) > 0 && (len(events) == 0 || gaps[0].at <= events[0].at) {
			change, gaps = gaps[0], gaps[1:]
		} else {
			change.at = events[0].at
		}
		if len(gaps) > 0 && gaps[0].at == change.at { // one gap ends when the next begins
			change.began, change.ended = change.began || gaps[0].began, change.ended || gaps[0].ended
			gaps = gaps[1:]
		}
		touched := map[string]bool{}
		for len(events) > 0 && events[0].at == change.at {
			for _, name := range events[0].fact.apply(f, events[0]) {
				touched[name] = true
			}
			events = events[1:]
		}
		for _, name := range slices.Sorted(maps.Keys(touched)) {
			n := f.nodes[name]
			switch {
			case n.gone:
				if delete(f.nodes, name); n.now != nil {
					change.gone = append(change.gone, name)
				}
			case n.shown:
				if next := n.build(); !same(n.now, next) {
					n.now = next
					change.nodes = append(change.nodes, next)
				}
			}
		}
		if change.began || change.ended || len(change.nodes) > 0 || len(change.gone) > 0 {
			out = append(out, change)
		}
	}
	return out
}

func (f *fleet) node(name string) *nodePast {
	n := f.nodes[name]
	if n == nil {
		n = &nodePast{name: name, sets: map[string]map[string]model.LabelSet{}, conditions: map[string]corev1.NodeCondition{}}
		f.nodes[name] = n
	}
	return n
}

func sanitized(name string) string {
	return "label_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
