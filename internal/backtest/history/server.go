package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

const (
	// Prometheus allows at most 11,000 steps in one query.
	points = 10_000
	// How often a query may be divided by the names of the nodes.
	deepest = 20
	// How often a query is sent to a busy server, and the longest pause between two tries.
	tries   = 6
	longest = 2 * time.Minute
)

type question struct {
	name string
	// If splits is true, text adds the matchers (by) to each selector, so that the question can be
	// divided by nodes.
	text   func(by string) string
	splits bool
	// The value of a series matters, and not only that the series exists.
	values bool
	// The query_offset of a rule: its evaluation at t uses the data of t minus offset.
	offset time.Duration
}

type series struct {
	Labels model.LabelSet
	Runs   []run
}

// A series exists at each step from From to Until, both inclusive and in ms. If values matter, the
// value is the same in the whole run.
type run struct {
	From, Until int64
	Value       float64
}

// It divides a question into queries within the limits of the Prometheus server.
type server struct {
	*client
	drop model.LabelName
	wait func(ctx context.Context, d time.Duration) error

	mu sync.Mutex
	// The largest number of steps in one query, by the question's name. It is set only after the
	// server has refused more.
	most map[string]int64
}

// The interval is [from, until], in ms.
func (s *server) get(ctx context.Context, q question, from, until, step int64) ([]series, error) {
	all := &answer{step: step, values: q.values, series: map[model.Fingerprint]*series{}}
	if err := s.collect(ctx, q, "", 0, from, until, all); err != nil {
		return nil, err
	}
	return all.sorted(), nil
}

func (s *server) collect(ctx context.Context, q question, by string, depth int, from, until int64, all *answer) error {
	for at := from; at <= until; {
		n := min(s.mostOf(q), (until-at)/all.step+1)
		end := at + (n-1)*all.step
		matrix, err := s.patiently(ctx, q.text(by), v1.Range{
			Start: time.UnixMilli(at).Add(-q.offset), End: time.UnixMilli(end).Add(-q.offset), Step: time.Duration(all.step) * time.Millisecond,
		})
		var f *fault
		switch {
		case err == nil:
			all.add(matrix, q.offset, s.drop)
			at = end + all.step
		case !errors.As(err, &f):
			return err
		case f.kind == large && q.splits && depth < deepest && (n == 1 || f.ofSeries()):
			for _, half := range halves(depth) {
				if err := s.collect(ctx, q, by+half, depth+1, at, end, all); err != nil {
					return err
				}
			}
			at = end + all.step
		case f.kind == large && n > 1:
			s.learn(q, (n+1)/2)
		case f.kind == large:
			return fmt.Errorf("the Prometheus at %s does not answer the query for %s even for a single time: %s. Raise this limit of the server, or its timeout, and run the backtest again", s.shown, q.name, f.text)
		default:
			return s.say(q, f)
		}
	}
	return nil
}

// halves returns two matchers for the label node, which divide the nodes by one bit of one of the
// last four characters of their names. depth selects the character and the bit.
func halves(depth int) []string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	var some []byte
	for i := range len(letters) {
		if i>>(depth/4)&1 == 1 {
			some = append(some, letters[i])
		}
	}
	pattern := fmt.Sprintf(`"(.*[%s].{%d})"`, some, depth%4)
	return []string{",node=~" + pattern, ",node!~" + pattern}
}

func (s *server) mostOf(q question) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.most[q.name], points)
}

func (s *server) learn(q question, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most == nil {
		s.most = map[string]int64{}
	}
	s.most[q.name] = min(most, cmp.Or(s.most[q.name], points))
}

// say is for a fault that smaller queries do not avoid. The error says what the user can do.
func (s *server) say(q question, f *fault) error {
	const late = "Run the backtest again later: with --state, the next run continues where this one stopped"
	switch f.kind {
	case busy:
		return fmt.Errorf("the Prometheus at %s is busy or down: after %d tries it gave no answer to the query for %s: %s. %s", s.shown, tries, q.name, f.text, late)
	case partial:
		return fmt.Errorf("the Prometheus at %s gave only a part of the data for %s: %s. %s", s.shown, q.name, f.text, late)
	case invalid:
		return &fault{kind: invalid, text: fmt.Sprintf("the Prometheus at %s cannot evaluate %s: %s", s.shown, q.name, f.text)}
	case refused, cut, large:
	}
	return fmt.Errorf("the Prometheus at %s does not answer the query for %s: %s. Check --prometheus and --http-config", s.shown, q.name, f.text)
}

func (s *server) patiently(ctx context.Context, text string, of v1.Range) (model.Matrix, error) {
	for try := 1; ; try++ {
		matrix, err := s.ask(ctx, text, of)
		var f *fault
		if !errors.As(err, &f) {
			return matrix, err
		}
		switch {
		case f.kind == cut && try > 1:
			f.kind = large // a proxy may cut off long answers, so try a shorter one
			return nil, f
		case f.kind == refused, f.kind == large, f.kind == invalid, try == tries:
			return nil, f
		}
		if err := s.wait(ctx, min(longest, cmp.Or(f.after, time.Second<<(try-1)))); err != nil {
			return nil, err
		}
	}
}

type answer struct {
	step   int64
	values bool
	series map[model.Fingerprint]*series
}

func (a *answer) add(matrix model.Matrix, offset time.Duration, drop model.LabelName) {
	for _, stream := range matrix {
		labels := model.LabelSet(stream.Metric)
		delete(labels, model.MetricNameLabel)
		delete(labels, drop)
		key := labels.Fingerprint()
		s := a.series[key]
		if s == nil {
			s = &series{Labels: labels}
			a.series[key] = s
		}
		before := len(s.Runs)
		for _, p := range stream.Values {
			s.point(a, int64(p.Timestamp)+offset.Milliseconds(), float64(p.Value))
		}
		for _, p := range stream.Histograms {
			s.point(a, int64(p.Timestamp)+offset.Milliseconds(), 0)
		}
		if before > 0 && before < len(s.Runs) && s.Runs[before].From <= s.Runs[before-1].Until {
			s.merge(a) // two replicas of Prometheus have this series
		}
	}
}

func (s *series) point(a *answer, at int64, value float64) {
	if !a.values {
		value = 1
	}
	if last := len(s.Runs) - 1; last >= 0 && s.Runs[last].Until+a.step == at && s.Runs[last].Value == value {
		s.Runs[last].Until = at
		return
	}
	s.Runs = append(s.Runs, run{at, at, value})
}

// If two runs overlap with different values, the run that begins earlier counts.
func (s *series) merge(a *answer) {
	slices.SortStableFunc(s.Runs, func(a, b run) int { return cmp.Compare(a.From, b.From) })
	out := s.Runs[:1]
	for _, r := range s.Runs[1:] {
		last := &out[len(out)-1]
		if r.From = max(r.From, last.Until+a.step); r.Value == last.Value && r.From == last.Until+a.step {
			last.Until = max(last.Until, r.Until)
		} else if r.From <= r.Until {
			out = append(out, r)
		}
	}
	s.Runs = out
}

func (a *answer) sorted() []series {
	out := make([]series, 0, len(a.series))
	for _, s := range a.series {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b series) int { return cmp.Compare(a.Labels.String(), b.Labels.String()) })
	return out
}
