package history

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"golang.org/x/sync/errgroup"
)

// answers are what a rule's expression gives at each evaluation of a chunk, by one range query.
type answers struct {
	expr string
	// reads is what the expression reads of what rules make, which a range query made before does not know.
	reads reach

	known             bool
	first, last, step int64
	at                map[int64]promql.Vector // only what is not empty
	was               promql.Vector           // at the last evaluation of the group
}

// knows says whether the answer of that time is known: the expression was asked, and reads nothing that rules made since.
func (a *answers) knows(at int64, lastly map[string]int64) bool {
	return a.known && at >= a.first && at <= a.last && (at-a.first)%a.step == 0 && !a.reads.some(lastly, at)
}

// ranged gives the answers of each rule of the group that a range query can answer.
func (e *evaluator) ranged(g *rules.Group) (out []*answers) {
	for _, rule := range g.Rules() {
		if ranged(rule.Query()) {
			out = append(out, &answers{expr: rule.Query().String(), reads: e.reach(rule.Query(), e.lookback)})
		}
	}
	return out
}

// fetch asks for the rules that a range query can answer, as many at once as there are processors.
func (e *evaluator) fetch(ctx context.Context, until time.Time) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	clear(e.ahead)
	for _, g := range e.groups {
		for _, a := range g.ahead {
			a.known, a.at = false, nil
			if !g.next.Before(until) {
				continue
			}
			e.ahead[a.expr] = append(e.ahead[a.expr], a)
			work.Go(func() error {
				if err := e.fetchRange(ctx, g, a, until); err != nil {
					return fmt.Errorf("evaluating the rules of group %s: %w", g.Name(), err)
				}
				return nil
			})
		}
	}
	return work.Wait()
}

func (e *evaluator) fetchRange(ctx context.Context, g *group, a *answers, until time.Time) error {
	first := g.next.Add(-g.QueryOffset())
	span := until.Sub(g.next) - 1
	last := first.Add(span - span%g.Interval())
	asked, err := e.engine.NewRangeQuery(ctx, e.past, nil, a.expr, first, last, g.Interval())
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
	a.first, a.last, a.step = timestamp.FromTime(first), timestamp.FromTime(last), g.Interval().Milliseconds()
	a.known, a.at = true, map[int64]promql.Vector{}
	for _, s := range matrix {
		for _, point := range s.Floats {
			a.at[point.T] = append(a.at[point.T], promql.Sample{Metric: s.Metric, T: point.T, F: point.F, DropName: s.DropName})
		}
		for _, point := range s.Histograms {
			a.at[point.T] = append(a.at[point.T], promql.Sample{Metric: s.Metric, T: point.T, H: point.H.Copy(), DropName: s.DropName})
		}
	}
	return nil
}

// ask answers a rule, or the template of an annotation.
func (e *evaluator) ask(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	e.asked = rules.FromOriginContext(ctx).Name
	when := timestamp.FromTime(at)
	for _, a := range e.ahead[expr] {
		if a.knows(when, e.lastly) {
			return slices.Clone(a.at[when]), nil // a recording rule changes what it is given
		}
	}
	return rules.EngineQueryFunc(e.engine, both{e})(ctx, expr, at)
}

// unchanged says that an evaluation of the group at its next time changes nothing: the last one left it steady, and each of its
// expressions is known to give what it gave then.
func (g *group) unchanged(lastly map[string]int64) bool {
	if !g.steady || len(g.ahead) < len(g.Rules()) {
		return false
	}
	at := timestamp.FromTime(g.next.Add(-g.QueryOffset()))
	for _, a := range g.ahead {
		if !a.knows(at, lastly) || !slices.EqualFunc(a.at[at], a.was, sameSample) {
			return false
		}
	}
	return true
}

func sameSample(a, b promql.Sample) bool {
	return a.H == nil && b.H == nil && a.F == b.F && labels.Equal(a.Metric, b.Metric)
}

// settle says after an evaluation whether the same answers would change nothing, and keeps the answers. They would not if it made
// nothing; or if nobody reads what it made, each of its alerts fires, and no template asks for more.
// The same answers give the same fault again.
func (g *group) settle(made bool, lastly map[string]int64) {
	g.steady = !made || !g.read && !g.asks
	for _, rule := range g.Rules() {
		if alerting, ok := rule.(*rules.AlertingRule); ok {
			alerting.ForEachActiveAlert(func(a *rules.Alert) {
				g.steady = g.steady && a.State != rules.StatePending && a.KeepFiringSince.IsZero()
			})
		}
	}
	at := timestamp.FromTime(g.next.Add(-g.QueryOffset()))
	for _, a := range g.ahead {
		g.steady = g.steady && a.knows(at, lastly) // otherwise it was asked once more, and the answer was another one
		a.was = a.at[at]
	}
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
	for name := range e.names {
		if reads(expr, name) {
			out.names = append(out.names, name)
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

// reads says whether an expression may read what the rule of a name makes.
func reads(expr parser.Expr, name string) bool {
	return slices.ContainsFunc(parser.ExtractSelectors(expr), func(m []*labels.Matcher) bool { return selects(m, name) })
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
