package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	corev1 "k8s.io/api/core/v1"
)

// readingState is all that a reading knows, in a form that another process can take over. What can be read again is not in it.
type readingState struct {
	Alerts    map[string]Alert
	Gap       *Moment
	Skipped   []Skip
	Metrics   map[string]bool
	Fleet     fleetState
	Recorded  []seriesState
	Evaluator *evaluatorState
}

func (p *Past) save(ctx context.Context) (*readingState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &readingState{
		Alerts: p.alerts, Gap: p.gap, Skipped: p.skipped, Metrics: p.seen.metrics, Fleet: p.fleet.save(),
	}
	if p.recorded != nil {
		s.Recorded = p.recorded.tracker.save()
		return s, nil
	}
	var err error
	s.Evaluator, err = p.evaluator.save(ctx)
	return s, err
}

// restore has the reading go on at that time, where s was saved.
func (p *Past) restore(ctx context.Context, s *readingState, at time.Time) error {
	if err := p.begin(); err != nil {
		return err
	}
	maps.Copy(p.alerts, s.Alerts)
	maps.Copy(p.seen.metrics, s.Metrics)
	for _, skipped := range s.Skipped {
		p.skip(skipped)
	}
	p.gap = s.Gap
	p.fleet.restore(s.Fleet)
	p.until = at
	if p.recorded != nil {
		p.recorded.tracker.restore(s.Recorded, nil)
		return nil
	}
	return p.evaluator.restore(ctx, s.Evaluator, at)
}

// seriesState is one series of a tracker.
type seriesState struct {
	Labels      []string // names and values in turn
	Last, Since int64
	Value       float64
	There       bool
}

func (t *tracker[T]) save() (out []seriesState) {
	for _, c := range t.known {
		out = append(out, seriesState{Labels: pairs(c.labels), Last: c.last, Since: c.since, Value: c.value, There: c.there})
	}
	return out
}

// restore calls there with each series that is there.
func (t *tracker[T]) restore(all []seriesState, there func(*series[T])) {
	t.known = map[uint64]*cursor[T]{}
	for _, s := range all {
		c := t.cursor(labels.FromStrings(s.Labels...))
		c.last, c.value, c.there = s.Last, s.Value, s.There
		c.series.value, c.series.there, c.since = s.Value, s.There, s.Since
		if s.There && there != nil {
			there(c.series)
		}
	}
}

func pairs(of labels.Labels) (out []string) {
	of.Range(func(l labels.Label) { out = append(out, l.Name, l.Value) })
	return out
}

// fleetState is what a fleet knows.
type fleetState struct {
	Series  []seriesState
	Nodes   map[string]nodeState
	Targets map[string]int64 // since when each shows what it shows
	Checks  []int64
	Gap     bool
	Seen    map[string]bool
}

type nodeState struct {
	Now    *corev1.Node
	Target string
	Lost   int64
}

func (f *fleet) save() fleetState {
	s := fleetState{
		Series: f.tracker.save(), Nodes: map[string]nodeState{}, Targets: map[string]int64{}, Checks: f.checks, Gap: f.gap, Seen: f.seen,
	}
	for name, n := range f.nodes {
		one := nodeState{Now: n.now, Lost: n.lost}
		if n.target != nil {
			one.Target = n.target.name
		}
		s.Nodes[name] = one
	}
	for name, t := range f.targets {
		s.Targets[name] = t.since
	}
	return s
}

func (f *fleet) restore(s fleetState) {
	f.tracker.restore(s.Series, func(one *series[fact]) {
		one.of.node.series = append(one.of.node.series, one)
		if one.of.metric == metricInfo {
			one.of.target.shows++
		}
	})
	for name, since := range s.Targets {
		f.target(name).since = since
	}
	for name, one := range s.Nodes {
		n := f.node(name)
		if n.now, n.lost = one.Now, one.Lost; one.Target != "" {
			n.target = f.target(one.Target)
		}
		if n.lost != 0 {
			f.lost[n] = true
		}
	}
	f.checks, f.gap = s.Checks, s.Gap
	maps.Copy(f.seen, s.Seen)
}

// evaluatorState is what an evaluator knows beyond what the data says.
type evaluatorState struct {
	Groups map[string]groupState // by file and name
	Made   []madeState
	Lastly map[string]int64
	Told   map[string]Alert
	Now    time.Time
}

type groupState struct {
	Evaluated bool
	Alerts    map[int][]alertState // by the place of the rule
	Bad       map[int]Skip
}

// alertState is one alert of a rule that is pending or fires, as Prometheus' rules.Alert has it.
type alertState struct {
	Labels, Annotations                            []string
	State                                          rules.AlertState
	Value                                          float64
	ActiveAt, FiredAt, LastSentAt, KeepFiringSince time.Time
}

// madeState is one series that the rules made.
type madeState struct {
	Labels []string
	At     []int64
	Values []float64
}

func (e *evaluator) save(ctx context.Context) (*evaluatorState, error) {
	s := &evaluatorState{Groups: map[string]groupState{}, Lastly: e.lastly, Told: e.told, Now: e.now}
	for _, g := range e.groups {
		of := groupState{Evaluated: g.evaluated, Alerts: map[int][]alertState{}, Bad: map[int]Skip{}}
		for i, rule := range g.Rules() {
			if bad := e.bad[rule]; bad != nil {
				of.Bad[i] = *bad
			}
			if alerting, ok := rule.(*rules.AlertingRule); ok {
				alerting.ForEachActiveAlert(func(a *rules.Alert) {
					if a.State != rules.StateInactive {
						of.Alerts[i] = append(of.Alerts[i], alertState{
							pairs(a.Labels), pairs(a.Annotations), a.State, a.Value, a.ActiveAt, a.FiredAt, a.LastSentAt, a.KeepFiringSince,
						})
					}
				})
			}
		}
		s.Groups[rules.GroupKey(g.File(), g.Name())] = of
	}
	var err error
	s.Made, err = e.saveMade(ctx)
	return s, err
}

// saveMade gives what the rules made, as far back as rules look.
func (e *evaluator) saveMade(ctx context.Context) (out []madeState, err error) {
	if e.made.NumSeries() == 0 {
		return nil, nil
	}
	from, until := timestamp.FromTime(e.now.Add(-e.look-time.Hour)), int64(math.MaxInt64)
	querier, err := tsdb.NewBlockQuerier(tsdb.NewRangeHead(e.made, from, until), from, until)
	if err != nil {
		return nil, err
	}
	defer querier.Close()
	set := querier.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+"))
	var samples chunkenc.Iterator
	for set.Next() {
		one := madeState{Labels: pairs(set.At().Labels())}
		samples = set.At().Iterator(samples)
		for kind := samples.Next(); kind != chunkenc.ValNone; kind = samples.Next() {
			if kind != chunkenc.ValFloat {
				return nil, fmt.Errorf("the rule %s makes native histograms, which a state does not hold", maker(set.At().Labels()))
			}
			at, v := samples.At()
			one.At, one.Values = append(one.At, at), append(one.Values, v)
		}
		if err := samples.Err(); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, set.Err()
}

// restore has each group that was evaluated go on with its last evaluation. That evaluation changes no alert, and what it made is made
// again: so Prometheus' groups know which of their series end next. Those that ended with it end with the same rule of it.
func (e *evaluator) restore(ctx context.Context, s *evaluatorState, at time.Time) error {
	e.start(at)
	e.now = s.Now
	maps.Copy(e.lastly, s.Lastly)
	maps.Copy(e.told, s.Told)
	again := map[string]map[int64]*group{} // when something is made again, by the name of its rule
	for _, g := range e.groups {
		of := s.Groups[rules.GroupKey(g.File(), g.Name())]
		for i, rule := range g.Rules() {
			if bad, is := of.Bad[i]; is {
				e.bad[rule] = &bad
			}
			if alerting, ok := rule.(*rules.AlertingRule); ok {
				if err := restoreAlerts(ctx, alerting, of.Alerts[i]); err != nil {
					return err
				}
			}
		}
		if of.Evaluated {
			g.next, g.ended = g.next.Add(-g.Interval()), map[string][]mark{}
			for _, rule := range g.Rules() {
				if again[rule.Name()] == nil {
					again[rule.Name()] = map[int64]*group{}
				}
				again[rule.Name()][timestamp.FromTime(g.next.Add(-g.QueryOffset()))] = g
			}
		}
	}
	app := e.made.Appender(ctx)
	for _, one := range s.Made {
		lset := labels.FromStrings(one.Labels...)
		for i, at := range one.At {
			if g := again[maker(lset)][at]; g != nil {
				if value.IsStaleNaN(one.Values[i]) {
					g.ended[maker(lset)] = append(g.ended[maker(lset)], mark{lset, at})
				}
				continue
			}
			if _, err := app.Append(0, lset, at, one.Values[i]); err != nil {
				return errors.Join(err, app.Rollback())
			}
		}
	}
	return app.Commit()
}

// restoreAlerts gives a rule the alerts that it had. Prometheus has no call for that, beyond the time since when an alert is pending. So the
// rule is evaluated once with an answer that makes these alerts, and each is then set to what it was.
func restoreAlerts(ctx context.Context, rule *rules.AlertingRule, all []alertState) error {
	if len(all) == 0 {
		return nil
	}
	was := map[string]alertState{}
	var answer promql.Vector
	for _, a := range all {
		lset := labels.FromStrings(a.Labels...)
		was[lset.String()] = a
		answer = append(answer, promql.Sample{Metric: lset, F: a.Value}) // a label may have the value in its text
	}
	_, err := rule.Eval(ctx, 0, time.Unix(0, 0), func(_ context.Context, expr string, _ time.Time) (promql.Vector, error) {
		if expr != rule.Query().String() {
			return nil, nil // a template asks; its text is set below
		}
		return answer, nil
	}, &url.URL{}, 0)
	if err != nil {
		return fmt.Errorf("restoring the alerts of rule %s: %w", rule.Name(), err)
	}
	rule.ForEachActiveAlert(func(a *rules.Alert) {
		of, known := was[a.Labels.String()]
		if !known {
			err = fmt.Errorf("restoring the alerts of rule %s: the template of a label gives something else for %s", rule.Name(), a.Labels)
			return
		}
		a.Annotations, a.State = labels.FromStrings(of.Annotations...), of.State
		a.ActiveAt, a.FiredAt, a.LastSentAt, a.KeepFiringSince = of.ActiveAt, of.FiredAt, of.LastSentAt, of.KeepFiringSince
	})
	return err
}
