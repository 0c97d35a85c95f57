package history

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"drydock.dev/drydock/internal/text"
)

const (
	alertsMetric = "ALERTS"
	stateLabel   = "alertstate"
)

// There are no recording rules, because Prometheus recorded their results.
type rulebook struct {
	rules  []*rule
	unused []string // the names of alerts that are not needed, whose rules are left out
}

func newRulebook(o Options) (*rulebook, error) {
	b := &rulebook{}
	parse := parser.NewParser(parser.Options{})
	names := map[string]bool{}
	empty := true
	for _, file := range o.Rules {
		if names[file.Name] {
			return nil, fmt.Errorf("two rule files have the name %s", file.Name)
		}
		names[file.Name] = true
		groups, errs := rulefmt.Parse(file.Text, false, model.UTF8Validation, parse, slog.New(slog.DiscardHandler))
		if err := errors.Join(errs...); err != nil {
			return nil, fmt.Errorf("reading the rules of %s: %w", file.Name, err)
		}
		for i := range groups.Groups {
			empty = false
			for j := range groups.Groups[i].Rules {
				if err := b.add(o, parse, &groups.Groups[i], &groups.Groups[i].Rules[j]); err != nil {
					return nil, fmt.Errorf("reading the rules of %s: %w", file.Name, err)
				}
			}
		}
	}
	if empty {
		return nil, errors.New("the rules have no groups")
	}
	slices.Sort(b.unused)
	b.unused = slices.Compact(b.unused)
	return b, nil
}

func (b *rulebook) add(o Options, parse parser.Parser, group *rulefmt.RuleGroup, r *rulefmt.Rule) error {
	if r.Alert == "" {
		return nil
	}
	fixed := fixedLabels(group, r)
	if o.Matters != nil && !o.Matters(fixed) {
		b.unused = append(b.unused, r.Alert)
		return nil
	}
	expr, err := parse.ParseExpr(r.Expr)
	if err != nil {
		return err
	}
	out := &rule{
		name: r.Alert, interval: cmp.Or(time.Duration(group.Interval), o.Interval), hold: time.Duration(r.For), keep: time.Duration(r.KeepFiringFor),
		labels: map[string]string{}, active: map[string]*active{},
	}
	if group.QueryOffset != nil {
		out.offset = time.Duration(*group.QueryOffset)
	}
	for _, all := range []map[string]string{group.Labels, r.Labels} {
		for name, value := range all {
			out.labels[name] = value
			out.templates = out.templates || strings.Contains(value, "{{")
		}
	}
	ours := o.ours()
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			s.LabelMatchers = append(s.LabelMatchers, ours...)
			out.reads = append(out.reads, s.LabelMatchers)
		}
		return nil
	})
	out.expr = expr.String()
	b.rules = append(b.rules, out)
	return nil
}

// Every alert of the rule has these labels, whatever its expression returns.
func fixedLabels(group *rulefmt.RuleGroup, r *rulefmt.Rule) model.LabelSet {
	out := model.LabelSet{}
	for _, all := range []map[string]string{group.Labels, r.Labels} {
		for name, value := range all {
			if delete(out, model.LabelName(name)); !strings.Contains(value, "{{") {
				out[model.LabelName(name)] = model.LabelValue(value)
			}
		}
	}
	out[model.AlertNameLabel] = model.LabelValue(r.Alert)
	return out
}

// skip reports rules whose alerts cannot matter, or nil if there are none.
func (b *rulebook) skip() []Skip {
	if len(b.unused) == 0 {
		return nil
	}
	return []Skip{{
		What: text.Count(len(b.unused), "rule"),
		Why:  "no policy, route, inhibition or blindWhen matches their alerts, so these rules were not evaluated: " + strings.Join(b.unused, ", "),
	}}
}
