package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// rule is one alerting rule. The server evaluates its expression. This code applies the fields for,
// keep_firing_for and labels, as Prometheus' rules/alerting.go does. It ignores annotations,
// because they decide nothing.
type rule struct {
	name, expr       string
	interval, offset time.Duration
	hold, keep       time.Duration
	labels           map[string]string
	templates        bool // the value of a label is a template
	recorded         bool // the rule stands for all alerts that Prometheus recorded
	silences         bool // the rule stands for the silences that Drydock recorded
	reads            [][]*labels.Matcher
	active           map[string]*active
	failed           *Skip
}

// active is an alert that is pending or fires.
type active struct {
	labels model.LabelSet
	since  int64 // when the alert became pending, in ms
	fired  int64 // when the alert began to fire, in ms; 0 while it is pending
	// missing is the time, in ms, of the first evaluation without a result. From then on, the alert
	// fires only because of keep_firing_for. missing is 0 while the expression has a result.
	missing int64
}

// alertChange is an alert that began to fire or ended.
type alertChange struct {
	at int64
	Alert
	silence bool // the change is of a silence about the node in the labels, not of an alert
}

// recordedAlerts returns a pseudo-rule that stands for all alerting rules. Its expression selects
// the alerts that Prometheus recorded as firing.
func recordedAlerts(o Options) *rule {
	selector := []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, alertsMetric),
		labels.MustNewMatcher(labels.MatchEqual, stateLabel, "firing"),
	}
	selector = append(selector, o.ours()...)
	return &rule{name: "--recorded", expr: matching(selector), interval: o.Step, recorded: true, reads: [][]*labels.Matcher{selector[:1]}, active: map[string]*active{}}
}

// recordedSilences returns a rule that the backtest makes itself, to read silences. Its expression
// selects the nodes whose repair was held by a silence, according to Drydock's own recorded
// metrics.
func recordedSilences(o Options) *rule {
	return &rule{
		name: "silences", expr: "group by (node) (" + o.selector("drydock_node_hold", `,reason="Silenced"`) + ")", interval: o.Step, silences: true,
		active: map[string]*active{},
	}
}

// matching returns the selector of series with these matchers, as text.
func matching(selector []*labels.Matcher) string {
	var all []string
	for _, m := range selector {
		all = append(all, m.String())
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (r *rule) question() question {
	name := "rule " + r.name
	if r.recorded {
		name = alertsMetric
	}
	return question{name: name, text: func(string) string { return r.expr }, values: r.templates, offset: r.offset}
}

// warmUp returns how long before a period the evaluation of the rule must begin. Otherwise the
// rule's pending and firing alerts would be wrong at the beginning of the period.
func (r *rule) warmUp() time.Duration { return r.hold + r.keep + 4*r.interval }

// shortest is the smallest number of evaluations in one query. If a query fails, it is divided down
// to this size to find the evaluations that fail.
const shortest = 60

// run returns the alerts that began to fire or ended in the interval [from, until). Both are in ms.
func (r *rule) run(ctx context.Context, p *Past, from, until int64) ([]alertChange, error) {
	step := r.interval.Milliseconds()
	first, last := ceil(from, step), ceil(until, step)-step
	if first > last {
		return nil, nil
	}
	found, failed, err := r.evaluated(ctx, p, first, last)
	if err != nil {
		return nil, err
	}
	if r.recorded && from == p.start {
		if err := r.before(ctx, p, first, found); err != nil {
			return nil, err
		}
	}
	r.judge(p, failed, last)
	all := r.alerts(ctx, p, found)
	for key, a := range r.active {
		if all[key] == nil {
			all[key] = &series{Labels: a.labels}
		}
	}
	var out []alertChange
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, r.follow(key, all[key], failed, first, last)...)
	}
	return out, nil
}

// evaluated queries the rule's expression in the interval [from, until]. found has the series of
// the results. failed has the times when the server could not evaluate the expression.
func (r *rule) evaluated(ctx context.Context, p *Past, from, until int64) (found []series, failed []run, err error) {
	step := r.interval.Milliseconds()
	found, err = p.ask(ctx, r.question(), from, until, step)
	var f *fault
	switch n := (until-from)/step + 1; {
	case err == nil || !errors.As(err, &f):
		return found, nil, err
	case n <= shortest:
		if r.failed == nil {
			r.failed = &Skip{From: time.UnixMilli(from).UTC(), What: "rule " + r.name, Why: f.text}
		}
		return nil, []run{{From: from, Until: until}}, nil
	default:
		middle := from + n/2*step
		first, failed, err := r.evaluated(ctx, p, from, middle-step)
		if err != nil {
			return nil, nil, err
		}
		second, more, err := r.evaluated(ctx, p, middle, until)
		return append(first, second...), append(failed, more...), err
	}
}

// If the server could not evaluate the rule for some time, judge adds a Skip for that period to p.
// The period may continue in the next call, so judge adds the Skip only after the period has ended.
func (r *rule) judge(p *Past, failed []run, last int64) {
	if r.failed == nil {
		return
	}
	if len(failed) > 0 {
		r.failed.Until = time.UnixMilli(failed[len(failed)-1].Until).UTC()
	}
	if len(failed) == 0 || failed[len(failed)-1].Until < last {
		p.skip(*r.failed)
		r.failed = nil
	}
}

// alerts returns the periods when each alert existed. The map's key is the alert's labels as text.
func (r *rule) alerts(ctx context.Context, p *Past, found []series) map[string]*series {
	out := map[string]*series{}
	of := &answer{step: r.interval.Milliseconds()}
	for _, s := range found {
		for _, one := range s.Runs {
			labels := r.labelsOf(ctx, p, s.Labels, one)
			if !p.options.has(labels) {
				continue
			}
			key := labels.String()
			if out[key] == nil {
				out[key] = &series{Labels: labels}
			}
			for _, other := range out[key].Runs {
				if other.From <= one.Until && one.From <= other.Until {
					p.skip(Skip{What: "rule " + r.name, Why: "several series make alerts with the same labels; Prometheus refuses such a rule"})
				}
			}
			out[key].Runs = append(out[key].Runs, run{one.From, one.Until, 1})
		}
	}
	for _, s := range out {
		s.merge(of)
	}
	return out
}

func (r *rule) labelsOf(ctx context.Context, p *Past, of model.LabelSet, at run) model.LabelSet {
	out := of.Clone()
	if r.silences {
		return p.options.ExternalLabels.Merge(out)
	}
	if r.recorded {
		delete(out, stateLabel)
		return p.options.ExternalLabels.Merge(out)
	}
	for name, value := range r.labels {
		if strings.Contains(value, "{{") {
			value = r.expand(ctx, p, value, of, at)
		}
		if delete(out, model.LabelName(name)); value != "" {
			out[model.LabelName(name)] = model.LabelValue(value)
		}
	}
	out[model.AlertNameLabel] = model.LabelValue(r.name)
	return p.options.ExternalLabels.Merge(out)
}

// expand expands the template of a label with Prometheus' own code. A backtest runs no queries for
// a template. If a template contains a query, the label's value is the text of the error.
func (r *rule) expand(ctx context.Context, p *Past, text string, of model.LabelSet, at run) string {
	plain := make(map[string]string, len(of))
	for name, value := range of {
		plain[string(name)] = string(value)
	}
	external := make(map[string]string, len(p.options.ExternalLabels))
	for name, value := range p.options.ExternalLabels {
		external[string(name)] = string(value)
	}
	const names = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
	data := template.AlertTemplateData(plain, external, "", promql.Sample{Metric: labels.FromMap(plain), F: at.Value})
	asks := func(context.Context, string, time.Time) (promql.Vector, error) {
		return nil, errors.New("a backtest does not run queries of templates")
	}
	out, err := template.NewTemplateExpander(ctx, names+text, "__alert_"+r.name, data, model.Time(at.From), asks, nil, nil).Expand()
	if err != nil {
		p.skip(Skip{What: "rule " + r.name, Why: "the template of a label cannot be expanded: " + err.Error()})
		return fmt.Sprintf("<error expanding template: %s>", err)
	}
	return out
}

// follow returns when one alert began to fire and ended between first and last, both in ms.
func (r *rule) follow(key string, s *series, failed []run, first, last int64) (out []alertChange) {
	step := r.interval.Milliseconds()
	a, runs := r.active[key], s.Runs
	emit := func(at, ended int64) {
		c := alertChange{at, Alert{Labels: s.Labels, StartsAt: time.UnixMilli(a.fired).UTC()}, r.silences}
		if ended != 0 {
			c.EndsAt = time.UnixMilli(ended).UTC()
		}
		out = append(out, c)
	}
	for at := first; at <= last; at += step {
		for len(runs) > 0 && runs[0].Until < at {
			runs = runs[1:]
		}
		if a == nil { // nothing changes until the series exists again
			if len(runs) == 0 {
				break
			}
			at = max(at, runs[0].From)
			a = &active{labels: s.Labels, since: min(at, runs[0].From)}
			r.active[key] = a
		}
		if i, _ := slices.BinarySearchFunc(failed, at, func(f run, at int64) int { return cmp.Compare(f.Until, at) }); i < len(failed) && failed[i].From <= at {
			continue // a failed evaluation changes nothing
		}
		if len(runs) > 0 && runs[0].From <= at {
			if a.missing = 0; a.fired == 0 && at-a.since >= r.hold.Milliseconds() {
				a.fired = a.since
				if !r.recorded {
					a.fired = at
				}
				emit(at, 0)
			}
			continue
		}
		if a.fired != 0 && r.keep > 0 {
			a.missing = cmp.Or(a.missing, at)
			if at-a.missing < r.keep.Milliseconds() {
				continue
			}
		}
		if a.fired != 0 {
			emit(at, at)
		}
		delete(r.active, key)
		a = nil
	}
	return out
}

// before looks for the real beginning of recorded alerts that already fire in the first evaluation.
// It queries earlier and earlier spans while an alert fires in all of the span.
func (r *rule) before(ctx context.Context, p *Past, first int64, found []series) error {
	step := r.interval.Milliseconds()
	open := map[string]*run{}
	for i := range found {
		if len(found[i].Runs) > 0 && found[i].Runs[0].From == first {
			open[found[i].Labels.String()] = &found[i].Runs[0]
		}
	}
	span := p.options.span.Milliseconds()
	for until := first - step; len(open) > 0; until -= span {
		earlier, err := p.ask(ctx, r.question(), until-span+step, until, step)
		if err != nil {
			return err
		}
		still := map[string]*run{}
		for _, s := range earlier {
			one := open[s.Labels.String()]
			if last := s.Runs[len(s.Runs)-1]; one != nil && last.Until == until {
				if one.From = last.From; last.From == until-span+step {
					still[s.Labels.String()] = one
				}
			}
		}
		open = still
	}
	return nil
}

// ceil returns the first multiple of step that is at least at.
func ceil(at, step int64) int64 { return at + (step-at%step)%step }
