package backtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// Routing is the part of Alertmanager's configuration that a backtest reads: routes and inhibition
// rules. Nothing is sent, so receivers are ignored.
type Routing struct {
	Route   *Route        `yaml:"route"`
	Inhibit []*Inhibition `yaml:"inhibit_rules"`
}

// Route is one route. ReadRouting fills in the settings that it inherits from its parent.
type Route struct {
	Receiver string            `yaml:"receiver"`
	Match    map[string]string `yaml:"match"`
	MatchRE  map[string]string `yaml:"match_re"`
	Matchers []string          `yaml:"matchers"`
	Continue bool              `yaml:"continue"`
	GroupBy  []string          `yaml:"group_by"`
	Wait     *model.Duration   `yaml:"group_wait"`
	Interval *model.Duration   `yaml:"group_interval"`
	Repeat   *model.Duration   `yaml:"repeat_interval"`
	Routes   []*Route          `yaml:"routes"`
	// Names of time intervals. A backtest does not apply them, and the report says so.
	Mute   []string `yaml:"mute_time_intervals"`
	Active []string `yaml:"active_time_intervals"`

	id       string
	matchers labels.Matchers
}

// Inhibition is one inhibition rule.
type Inhibition struct {
	SourceMatch    map[string]string `yaml:"source_match"`
	SourceMatchRE  map[string]string `yaml:"source_match_re"`
	SourceMatchers []string          `yaml:"source_matchers"`
	TargetMatch    map[string]string `yaml:"target_match"`
	TargetMatchRE  map[string]string `yaml:"target_match_re"`
	TargetMatchers []string          `yaml:"target_matchers"`
	Equal          []string          `yaml:"equal"`

	source, target labels.Matchers
}

// With this value in group_by, each alert has its own group.
const allLabels = "..."

// ReadRouting reads the configuration of an Alertmanager.
func ReadRouting(text []byte) (*Routing, error) {
	var r Routing
	if err := yaml.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("not a configuration of Alertmanager: %w", err)
	}
	if r.Route == nil {
		return nil, errors.New("the configuration has no route")
	}
	wait, interval, repeat := model.Duration(30*time.Second), model.Duration(5*time.Minute), model.Duration(4*time.Hour) // Alertmanager's defaults
	if err := r.Route.resolve(&Route{Wait: &wait, Interval: &interval, Repeat: &repeat}, "0"); err != nil {
		return nil, err
	}
	for i, rule := range r.Inhibit {
		var err error
		if rule.source, err = matchersOf(rule.SourceMatch, rule.SourceMatchRE, rule.SourceMatchers); err == nil {
			rule.target, err = matchersOf(rule.TargetMatch, rule.TargetMatchRE, rule.TargetMatchers)
		}
		if err != nil {
			return nil, fmt.Errorf("inhibit_rules[%d]: %w", i, err)
		}
	}
	return &r, nil
}

func (r *Route) resolve(above *Route, id string) (err error) {
	if r.id = id; r.Receiver == "" {
		r.Receiver = above.Receiver
	}
	if r.GroupBy == nil {
		r.GroupBy = above.GroupBy
	}
	for _, d := range []struct{ own, above **model.Duration }{{&r.Wait, &above.Wait}, {&r.Interval, &above.Interval}, {&r.Repeat, &above.Repeat}} {
		if *d.own == nil {
			*d.own = *d.above
		}
	}
	if r.matchers, err = matchersOf(r.Match, r.MatchRE, r.Matchers); err != nil {
		return fmt.Errorf("the route %s: %w", id, err)
	}
	for i, below := range r.Routes {
		if err := below.resolve(r, fmt.Sprintf("%s.%d", id, i)); err != nil {
			return err
		}
	}
	return nil
}

func matchersOf(equal, re map[string]string, all []string) (out labels.Matchers, err error) {
	add := func(t labels.MatchType, from map[string]string) {
		for name, value := range from {
			m, fault := labels.NewMatcher(t, name, value)
			out, err = append(out, m), errors.Join(err, fault)
		}
	}
	add(labels.MatchEqual, equal)
	add(labels.MatchRegexp, re)
	for _, text := range all {
		more, fault := labels.ParseMatchers(text)
		out, err = append(out, more...), errors.Join(err, fault)
	}
	return out, err
}

// Alertmanager chooses a route if it matches and none of its children does. It tries the siblings
// after a matching route only if that route has continue: true.
func (r *Route) of(set model.LabelSet) (out []*Route) {
	if !r.matchers.Matches(set) {
		return nil
	}
	for _, below := range r.Routes {
		found := below.of(set)
		out = append(out, found...)
		if len(found) > 0 && !below.Continue {
			break
		}
	}
	if len(out) == 0 {
		out = []*Route{r}
	}
	return out
}

func (r *Route) intervals() []string {
	out := slices.Concat(r.Mute, r.Active)
	for _, below := range r.Routes {
		out = append(out, below.intervals()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *Route) group(set model.LabelSet) string {
	by := model.LabelSet{}
	for name, value := range set {
		if slices.Contains(r.GroupBy, string(name)) || slices.Contains(r.GroupBy, allLabels) {
			by[name] = value
		}
	}
	return r.id + by.String()
}

func (r *Inhibition) same(a, b model.LabelSet) bool {
	return !slices.ContainsFunc(r.Equal, func(name string) bool { return a[model.LabelName(name)] != b[model.LabelName(name)] })
}
