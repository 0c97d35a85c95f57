package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// metricsOf are the metrics that are read; none where a rule reads metrics that it does not name.
func metricsOf(o Options) ([]string, error) {
	all := append(nodeMetrics(), alertsMetric)
	parse := parser.NewParser(parser.Options{})
	for _, file := range o.Rules {
		groups, errs := loader{map[string][]byte{file.Name: file.Text}, parse}.Load(file.Name, false, model.UTF8Validation)
		if len(errs) > 0 {
			return nil, fmt.Errorf("reading the rules: %w", errs[0])
		}
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				expr, err := parse.ParseExpr(rule.Expr)
				if err != nil {
					return nil, fmt.Errorf("reading the rules of %s: %w", file.Name, err)
				}
				names, named := selected(expr)
				if !named {
					return nil, nil
				}
				all = append(all, names...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
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
