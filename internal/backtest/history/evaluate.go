package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/strutil"
)

// evaluator evaluates rules over the past with Prometheus' own rule groups: each group at its own times, all groups in
// order of time.
//
// A rule is asked for a whole chunk at once, as a range query: each step of one is the instant query at that time. Where
// it reads what rules make, and they made some in the time that it looks back on, it is asked once more, at that time.
type evaluator struct {
	engine *promql.Engine
	parser parser.Parser
	groups []*group
	past   storage.Queryable // without what these rules make
	made   *tsdb.Head        // what these rules make
	folder string            // where made keeps its chunks
	names  map[string]bool   // the alerts and recorded metrics that these rules make
	look   time.Duration     // how far back the rules look
	hold   time.Duration     // how long the state of a rule lasts

	reads    map[string]reach // by expression
	lastly   map[string]int64 // when a rule made something, by its name
	slot     func(*rules.Group, time.Time) time.Time
	ahead    map[query]promql.Vector
	now      time.Time
	found    []Alert
	told     map[string]Alert
	skip     func(Skip)
	external model.LabelSet
	bad      map[rules.Rule]*Skip
}

type group struct {
	*rules.Group
	next   time.Time
	ranged []string // the expressions that a range query can answer, as far as they read nothing that rules make
}

type query struct {
	expr string
	at   int64
}

func newEvaluator(files []RuleFile, o Options, past storage.Queryable, skip func(Skip)) (*evaluator, error) {
	e := &evaluator{
		parser: parser.NewParser(parser.Options{}),
		names:  map[string]bool{}, reads: map[string]reach{}, lastly: map[string]int64{}, told: map[string]Alert{},
		bad: map[rules.Rule]*Skip{}, skip: skip, external: o.ExternalLabels, slot: slot,
	}
	quiet := slog.New(slog.DiscardHandler)
	e.engine = promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: 200_000_000, Timeout: time.Hour, LookbackDelta: o.Lookback, Parser: e.parser,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return o.Interval.Milliseconds() },
	})
	external := labels.FromMap(plainMap(o.ExternalLabels))
	texts, names := map[string][]byte{}, []string(nil)
	for _, file := range files {
		if _, twice := texts[file.Name]; twice {
			return nil, fmt.Errorf("two rule files have the name %s", file.Name)
		}
		texts[file.Name] = file.Text
		names = append(names, file.Name)
	}
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: e.ask, NotifyFunc: e.notify, Appendable: appendable{e}, Logger: quiet, ExternalURL: &url.URL{},
		GroupLoader: loader{texts, e.parser}, Parser: e.parser,
	})
	groups, errs := manager.LoadGroups(o.Interval, external, "", nil, false, names...)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		e.groups = append(e.groups, &group{Group: groups[key]})
		for _, rule := range groups[key].Rules() {
			e.names[rule.Name()] = true
			if alerting, ok := rule.(*rules.AlertingRule); ok {
				alerting.SetRestored(true)
				e.hold = max(e.hold, alerting.HoldDuration()+alerting.KeepFiringFor()+4*groups[key].Interval())
			}
		}
	}
	if len(e.groups) == 0 {
		return nil, errors.New("the rules have no groups")
	}
	for _, g := range e.groups {
		for _, rule := range g.Rules() {
			e.look = max(e.look, o.Lookback+lookback(rule.Query()))
			if ranged(rule.Query()) {
				expr := rule.Query().String()
				g.ranged = append(g.ranged, expr)
				e.reads[expr] = e.reach(rule.Query(), o.Lookback)
			}
		}
	}
	e.past = hidden{past, e.makes}
	return e, e.openHead()
}

// openHead makes the store of what the rules make. Like Prometheus' own it is in memory, and its older chunks are in a folder.
func (e *evaluator) openHead() error {
	folder, err := os.MkdirTemp("", "drydock-backtest-")
	if err != nil {
		return fmt.Errorf("making a folder for what the rules make: %w", err)
	}
	e.folder = folder
	options := tsdb.DefaultHeadOptions()
	options.ChunkDirRoot = folder
	options.StripeSize = 1 << 10
	if e.made, err = tsdb.NewHead(nil, nil, nil, nil, options, nil); err != nil {
		return fmt.Errorf("making a store for what the rules make: %w", err)
	}
	return e.made.Init(math.MinInt64)
}

func (e *evaluator) close() error {
	return errors.Join(e.made.Close(), os.RemoveAll(e.folder))
}

// warmUp is how long before a time evaluation has to begin so that all states are right at that time.
func (e *evaluator) warmUp() time.Duration { return e.hold }

// start sets the time of the first evaluation of each group.
func (e *evaluator) start(from time.Time) {
	for _, g := range e.groups {
		g.next = e.slot(g.Group, from)
	}
}

// slot is when Prometheus evaluates a group for the first time from a time on.
func slot(g *rules.Group, from time.Time) time.Time {
	at := g.EvalTimestamp(from.UnixNano())
	if at.Before(from) {
		return at.Add(g.Interval())
	}
	return at
}

// run evaluates the rules until until (excluded), and gives the alerts that changed, in order of time.
func (e *evaluator) run(ctx context.Context, until time.Time) ([]alertChange, error) {
	e.ahead = map[query]promql.Vector{}
	for _, g := range e.groups {
		if err := e.fetch(ctx, g, until); err != nil {
			return nil, err
		}
	}
	var out []alertChange
	for {
		g := e.groups[0]
		for _, other := range e.groups[1:] {
			if other.next.Before(g.next) {
				g = other
			}
		}
		if !g.next.Before(until) {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.now, e.found = g.next, nil
		g.Eval(ctx, e.now)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.judge(g)
		for _, alert := range e.found {
			out = append(out, alertChange{at: e.now.UnixMilli(), Alert: alert})
		}
		g.next = g.next.Add(g.Interval())
	}
	for key, alert := range e.told {
		if !alert.EndsAt.IsZero() && until.Sub(alert.EndsAt) > time.Hour {
			delete(e.told, key) // Prometheus forgets it after 15 minutes
		}
	}
	if e.made.NumSeries() > 0 {
		if err := e.made.Truncate(timestamp.FromTime(until.Add(-e.look - time.Hour))); err != nil {
			return nil, fmt.Errorf("forgetting what the rules made: %w", err)
		}
	}
	return out, nil
}

// fetch asks for the rules of a group that a range query can answer.
func (e *evaluator) fetch(ctx context.Context, g *group, until time.Time) error {
	if !g.next.Before(until) {
		return nil
	}
	first := g.next.Add(-g.QueryOffset())
	span := until.Sub(g.next) - 1
	last := first.Add(span - span%g.Interval())
	for _, expr := range g.ranged {
		if err := e.fetchRange(ctx, expr, first, last, g.Interval()); err != nil {
			return fmt.Errorf("evaluating the rules of group %s: %w", g.Name(), err)
		}
	}
	return nil
}

func (e *evaluator) fetchRange(ctx context.Context, expr string, first, last time.Time, step time.Duration) error {
	asked, err := e.engine.NewRangeQuery(ctx, e.past, nil, expr, first, last, step)
	if err != nil {
		return err
	}
	defer asked.Close()
	result := asked.Exec(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if result.Err != nil {
		return nil // one step may be at fault: each is asked for on its own, and the rule says which failed
	}
	matrix, err := result.Matrix()
	if err != nil {
		return err
	}
	for at := first; !at.After(last); at = at.Add(step) {
		e.ahead[query{expr, timestamp.FromTime(at)}] = nil
	}
	for _, s := range matrix {
		for _, point := range s.Floats {
			key := query{expr, point.T}
			e.ahead[key] = append(e.ahead[key], promql.Sample{Metric: s.Metric, T: point.T, F: point.F, DropName: s.DropName})
		}
		for _, point := range s.Histograms {
			key := query{expr, point.T}
			e.ahead[key] = append(e.ahead[key], promql.Sample{Metric: s.Metric, T: point.T, H: point.H.Copy(), DropName: s.DropName})
		}
	}
	return nil
}

// ask answers a rule, or the template of an annotation.
func (e *evaluator) ask(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	when := timestamp.FromTime(at)
	if known, ok := e.ahead[query{expr, when}]; ok && !e.reads[expr].some(e.lastly, when) {
		return known, nil
	}
	return rules.EngineQueryFunc(e.engine, both{e})(ctx, expr, at)
}

// notify is given all alerts of a rule that fire or have ended lately, after each evaluation.
func (e *evaluator) notify(_ context.Context, expr string, alerts ...*rules.Alert) {
	slices.SortFunc(alerts, func(a, b *rules.Alert) int { return labels.Compare(a.Labels, b.Labels) })
	for _, given := range alerts {
		alert := Alert{
			Labels: withExternal(labelSet(given.Labels), e.external), Annotations: labelSet(given.Annotations),
			StartsAt: given.FiredAt, EndsAt: given.ResolvedAt,
			GeneratorURL: strutil.TableLinkForExpression(expr),
		}
		key := given.Labels.String()
		last, known := e.told[key]
		if known && last.same(alert) || !known && !alert.EndsAt.IsZero() {
			continue
		}
		e.told[key] = alert
		e.found = append(e.found, alert)
	}
}

// judge names the rules that could not be evaluated, each once for all the time during which it could not.
func (e *evaluator) judge(g *group) {
	for _, rule := range g.Rules() {
		err, last := rule.LastError(), e.bad[rule]
		switch {
		case err == nil && last == nil:
		case err == nil:
			last.Until = e.now
			e.skip(*last)
			delete(e.bad, rule)
		case last == nil:
			e.bad[rule] = &Skip{From: e.now, What: "rule " + rule.Name(), Why: err.Error()}
		}
	}
}

// failing names the rules that could not be evaluated to the end.
func (e *evaluator) failing() []Skip {
	var out []Skip
	for _, last := range e.bad {
		still := *last
		still.Until = e.now
		out = append(out, still)
	}
	return out
}

// makes says whether these rules make a series.
func (e *evaluator) makes(of labels.Labels) bool {
	return e.names[maker(of)]
}

// maker is the name of the rule that makes a series, where it is one.
func maker(of labels.Labels) string {
	name := of.Get(model.MetricNameLabel)
	if name == alertsMetric || name == alertsForState {
		return of.Get(labels.AlertName)
	}
	return name
}

// ranged says whether a range query answers an expression.
func ranged(expr parser.Expr) bool {
	free := true
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			free = free && n.StartOrEnd == 0
		case *parser.SubqueryExpr:
			free = free && n.StartOrEnd == 0
		}
		return nil
	})
	return free
}

// reach is what an expression reads of what rules make.
type reach struct {
	names []string
	back  int64 // how far back it looks
}

func (e *evaluator) reach(expr parser.Expr, instant time.Duration) reach {
	out := reach{back: (instant + lookback(expr)).Milliseconds()}
	for _, matchers := range parser.ExtractSelectors(expr) {
		for name := range e.names {
			if selects(matchers, name) {
				out.names = append(out.names, name)
			}
		}
	}
	return out
}

// some says whether rules made some of it, by when they lastly made what.
func (r reach) some(lastly map[string]int64, at int64) bool {
	return slices.ContainsFunc(r.names, func(name string) bool {
		last, any := lastly[name]
		return any && at-last <= r.back
	})
}

// selects says whether a selector may select what the rule of a name makes.
func selects(matchers []*labels.Matcher, name string) bool {
	recorded, alerts := true, true
	for _, m := range matchers {
		switch m.Name {
		case model.MetricNameLabel:
			recorded = recorded && m.Matches(name)
			alerts = alerts && (m.Matches(alertsMetric) || m.Matches(alertsForState))
		case labels.AlertName:
			alerts = alerts && m.Matches(name)
		}
	}
	return recorded || alerts
}

// lookback is how far back an expression looks beyond the lookback of an instant.
func lookback(expr parser.Expr) time.Duration {
	var longest time.Duration
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		var all time.Duration
		for _, n := range append(slices.Clone(path), node) {
			switch n := n.(type) {
			case *parser.VectorSelector:
				all += n.OriginalOffset
			case *parser.MatrixSelector:
				all += n.Range
			case *parser.SubqueryExpr:
				all += n.Range + n.OriginalOffset
			}
		}
		longest = max(longest, all)
		return nil
	})
	return longest
}

const (
	alertsMetric   = "ALERTS"
	alertsForState = "ALERTS_FOR_STATE"
)

// alertChange is an alert that began to fire, changed its annotations, or ended.
type alertChange struct {
	at int64
	Alert
}

func (a Alert) same(b Alert) bool {
	return a.StartsAt.Equal(b.StartsAt) && a.EndsAt.Equal(b.EndsAt) && a.Annotations.Equal(b.Annotations)
}

func (a Alert) compare(b Alert) int { return strings.Compare(a.Labels.String(), b.Labels.String()) }

func labelSet(of labels.Labels) model.LabelSet {
	out := make(model.LabelSet, of.Len())
	of.Range(func(l labels.Label) {
		out[model.LabelName(strings.Clone(l.Name))] = model.LabelValue(strings.Clone(l.Value))
	})
	return out
}

func plainMap(of model.LabelSet) map[string]string {
	out := make(map[string]string, len(of))
	for name, value := range of {
		out[string(name)] = string(value)
	}
	return out
}
