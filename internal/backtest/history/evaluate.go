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
// A group whose evaluation would change nothing is not evaluated: most groups are, most of the time.
type evaluator struct {
	engine *promql.Engine
	groups []*group
	past   storage.Queryable // without what these rules make
	made   *tsdb.Head        // what these rules make
	folder string            // where made keeps its chunks
	names  map[string]bool   // the alerts and recorded metrics that these rules make
	look   time.Duration     // how far back the rules look
	hold   time.Duration     // how long the state of a rule lasts

	lookback time.Duration
	lastly   map[string]int64  // when a rule made something, by its name
	wrote    bool              // whether the evaluation that is under way made something
	ending   map[string][]mark // what ends with it though it does not know it, by the name of its rule
	asked    string            // the rule whose turn it is
	slot     func(*rules.Group, time.Time) time.Time
	ahead    map[string][]*answers // by expression
	now      time.Time
	found    []Alert
	told     map[string]Alert
	skip     func(Skip)
	external model.LabelSet
	bad      map[rules.Rule]*Skip
}

// mark is the end of a series.
type mark struct {
	of labels.Labels
	at int64
}

type group struct {
	*rules.Group
	next time.Time
	// evaluated: there was an evaluation before the next one.
	evaluated bool
	// ended are the series, by the name of their rule, that ended with the evaluation that is made again next: it does not know them.
	ended  map[string][]mark
	ahead  []*answers // of the rules that a range query can answer
	steady bool       // the same answers as at the last evaluation would change nothing
	read   bool       // a rule reads what this group makes
	asks   bool       // a template of this group asks for more than its rules' expressions do
}

func newEvaluator(book *rulebook, o Options, past storage.Queryable, skip func(Skip)) (*evaluator, error) {
	e := &evaluator{
		names: map[string]bool{}, lookback: o.Lookback, lastly: map[string]int64{}, told: map[string]Alert{}, ahead: map[string][]*answers{},
		bad: map[rules.Rule]*Skip{}, skip: skip, external: o.ExternalLabels, slot: slot,
	}
	quiet := slog.New(slog.DiscardHandler)
	e.engine = promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: 200_000_000, Timeout: time.Hour, LookbackDelta: o.Lookback, Parser: book.parser,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return o.Interval.Milliseconds() },
	})
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: e.ask, NotifyFunc: e.notify, Appendable: appendable{e}, Logger: quiet, ExternalURL: &url.URL{},
		GroupLoader: book, Parser: book.parser,
	})
	groups, errs := manager.LoadGroups(o.Interval, labels.FromMap(plainMap(o.ExternalLabels)), "", nil, false, book.names...)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		e.groups = append(e.groups, &group{Group: groups[key]})
		for _, rule := range groups[key].Rules() {
			e.names[rule.Name()] = true
			e.look = max(e.look, o.Lookback+lookback(rule.Query()))
			if alerting, ok := rule.(*rules.AlertingRule); ok {
				alerting.SetRestored(true)
				e.hold = max(e.hold, alerting.HoldDuration()+alerting.KeepFiringFor()+4*groups[key].Interval())
			}
		}
	}
	for _, g := range e.groups {
		g.ahead = e.ranged(g.Group)
		g.asks = book.asks(g.File(), g.Name())
		for _, other := range e.groups {
			g.read = g.read || slices.ContainsFunc(other.Rules(), func(reader rules.Rule) bool {
				return slices.ContainsFunc(g.Rules(), func(r rules.Rule) bool { return reads(reader.Query(), r.Name()) })
			})
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
	if err := e.fetch(ctx, until); err != nil {
		return nil, err
	}
	var out []alertChange
	for {
		g := e.first()
		if g == nil || !g.next.Before(until) {
			break
		}
		e.now = g.next
		if !g.unchanged(e.lastly) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e.found, e.wrote, e.ending, g.ended = nil, false, g.ended, nil
			g.Eval(ctx, e.now)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e.judge(g)
			g.settle(e.wrote, e.lastly)
			for _, alert := range e.found {
				out = append(out, alertChange{at: e.now.UnixMilli(), Alert: alert})
			}
		}
		g.next, g.evaluated = g.next.Add(g.Interval()), true
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

// first is the group that is evaluated next; nil: there are none.
func (e *evaluator) first() (first *group) {
	for _, g := range e.groups {
		if first == nil || g.next.Before(first.next) {
			first = g
		}
	}
	return first
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

const (
	alertsMetric   = "ALERTS"
	alertsForState = "ALERTS_FOR_STATE"
	stateLabel     = "alertstate"
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
