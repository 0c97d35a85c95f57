package history

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// metrics are those that are read; none where a rule reads metrics that it does not name.
func (b *rulebook) metrics() []string {
	all := append(nodeMetrics(), alertsMetric)
	for _, name := range b.names {
		for _, group := range b.files[name].Groups {
			for _, rule := range group.Rules {
				expr, err := b.Parse(rule.Expr)
				if err != nil {
					return nil // it was parsed before
				}
				names, named := selected(expr)
				if !named {
					return nil
				}
				all = append(all, names...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// selected are the metrics that an expression reads, and whether it names all of them.
func selected(expr parser.Expr) (names []string, named bool) {
	named = true
	for _, matchers := range parser.ExtractSelectors(expr) {
		i := slices.IndexFunc(matchers, func(m *labels.Matcher) bool {
			return m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual
		})
		if i < 0 {
			named = false
			continue
		}
		names = append(names, matchers[i].Value)
	}
	return names, named
}

// missing names the metrics that rules read and the past does not have.
func (s *seen) missing(e *evaluator) []Skip {
	readers := map[string][]string{}
	for _, g := range e.groups {
		for _, rule := range g.Rules() {
			names, _ := selected(rule.Query())
			for _, name := range names {
				if !s.metrics[name] && name != alertsMetric && name != alertsForState && !e.names[name] {
					readers[name] = append(readers[name], rule.Name())
				}
			}
		}
	}
	var out []Skip
	for _, name := range sortedKeys(readers) {
		rules := slices.Compact(slices.Sorted(slices.Values(readers[name])))
		out = append(out, Skip{What: name, Why: "no series in the data: it is read by " + strings.Join(rules, ", ")})
	}
	return out
}

// seen notes which metrics there are.
type seen struct {
	storage.Queryable

	mu      sync.Mutex
	metrics map[string]bool
}

func (s *seen) Querier(from, until int64) (storage.Querier, error) {
	querier, err := s.Queryable.Querier(from, until)
	if err != nil {
		return nil, err
	}
	return hidingQuerier{querier, func(of labels.Labels) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.metrics[of.Get(model.MetricNameLabel)] = true
		return false
	}}, nil
}
