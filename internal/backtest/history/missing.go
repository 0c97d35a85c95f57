package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const looks = 120

// Without a Skip for a missing metric, a rule without data would look like a rule that did not
// fire.
func (p *Past) missing(ctx context.Context, from, until time.Time) error {
	readers := map[string][]string{}
	for _, metric := range []string{metricCreated, metricLabels, metricRole, metricUnschedulable, metricCondition} {
		readers[metric] = nil
	}
	for _, r := range p.rules {
		for _, selector := range r.reads {
			if what := named(selector); what != "" && !slices.Contains(readers[what], r.name) {
				readers[what] = append(readers[what], r.name)
			}
		}
	}
	step := p.options.Step.Milliseconds()
	first, last := ceil(from.UnixMilli(), step), ceil(until.UnixMilli(), step)-step
	coarse := ceil(max(step, (last-first)/looks), step)
	long := max(coarse, p.options.Lookback.Milliseconds())
	for _, what := range sortedKeys(readers) {
		always := !strings.HasPrefix(what, alertsMetric) // series of alerts exist only while an alert does
		q := question{name: what, splits: true, text: func(by string) string {
			if !always {
				return fmt.Sprintf("group(present_over_time(%s[%dms]))", p.options.selector(what, by), long)
			}
			return "group(" + p.options.selector(what, by) + ")"
		}}
		found, err := p.server.get(ctx, q, first, last, coarse)
		var f *fault
		if errors.As(err, &f) {
			continue // the code that reads this metric reports it
		}
		if err != nil {
			return err
		}
		why := "Nodes in the backtest lack its values"
		if by := readers[what]; len(by) > 0 {
			slices.Sort(by)
			why = "these rules need it: " + strings.Join(by, ", ")
		}
		if len(found) == 0 {
			p.skip(Skip{What: what, Why: "no series in the data: " + why})
			continue
		}
		at := first
		for _, r := range append(found[0].Runs, run{From: last + coarse}) {
			if r.From-at > long && always && !strings.HasPrefix(what, "kube_node_") { // without metrics of Nodes, this time is a gap anyway
				p.skip(Skip{From: time.UnixMilli(at).UTC(), Until: time.UnixMilli(min(r.From, until.UnixMilli())).UTC(), What: what, Why: "no series in this time: " + why})
			}
			at = r.Until + coarse
		}
	}
	return nil
}

func (o *Options) selector(what, by string) string {
	metric, more, _ := strings.Cut(strings.TrimSuffix(what, "}"), "{")
	for _, m := range o.ours() {
		more += "," + m.String()
	}
	return metric + "{" + strings.TrimPrefix(more+by, ",") + "}"
}

// named includes the matcher of the alert's name for series of alerts. It returns "" if the
// selector names no metric.
func named(selector []*labels.Matcher) string {
	what, alert := "", ""
	for _, m := range selector {
		switch {
		case m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual:
			what = m.Value
		case m.Name == labels.AlertName && m.Type == labels.MatchEqual:
			alert = "{" + m.String() + "}"
		}
	}
	if what == alertsMetric {
		what += alert
	}
	return what
}
