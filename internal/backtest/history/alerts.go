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

// The server evaluates only the expression. The code below applies for, keep_firing_for and labels
// as Prometheus' rules/alerting.go does.
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

type active struct {
	labels model.LabelSet
	since  int64 // when the alert became pending, in ms
	fired  int64 // when the alert began to fire, in ms; 0 while it is pending
	// The time, in ms, of the first evaluation without a result. From then on, only keep_firing_for
	// lets the alert fire. 0 while there is a result.
	missing int64
}

type alertChange struct {
	at int64
	Alert
	silence bool // the change is of a silence about the node in the labels, not of an alert
}

// This rule stands for all alerting rules: it selects the alerts that Prometheus recorded as
// firing.
func recordedAlerts(o Options) *rule {
	selector := []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, alertsMetric),
		labels.MustNewMatcher(labels.MatchEqual, stateLabel, "firing"),
	}
	selector = append(selector, o.ours()...)
	return &rule{name: "--recorded", expr: matching(selector), interval: o.Step, recorded: true, reads: [][]*labels.Matcher{selector[:1]}, active: map[string]*active{}}
}

// Drydock's own metrics show which nodes were held by a silence.
func recordedSilences(o Options) *rule {
	return &rule{
		name: "silences", expr: "group by (node) (" + o.selector("drydock_node_hold", `,reason="Silenced"`) + ")", interval: o.Step, silences: true,
		active: map[string]*active{},
	}
}

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

// An alert may be pending or firing already when the period begins, so the evaluation starts
// earlier.
func (r *rule) warmUp() time.Duration { return r.hold + r.keep + 4*r.interval }

// The smallest number of evaluations in one query. A failing query is divided down to this size.
const shortest = 60

// The interval is [from, until), in ms.
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

// The interval is [from, until]. failed has the times that the server could not evaluate.
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

// A failure may continue in the next call, so the Skip is added only when it has ended.
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

// The key of the map is the alert's labels as text.
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

// A backtest runs no queries for a template: the text of the error becomes the label's value.
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

// Both times are in ms.
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

// An alert that already fires in the first evaluation began earlier. The queries go further back
// until they find its beginning.
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

func ceil(at, step int64) int64 { return at + (step-at%step)%step }
