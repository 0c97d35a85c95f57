package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// recorded takes the alerts from the series ALERTS, which Prometheus records of each rule. For those that fire at the beginning of the
// reading, ALERTS is also read before it.
type recorded struct {
	tracker  tracker[model.LabelSet]
	external model.LabelSet
}

func newRecorded(o Options, skip func(Skip)) *recorded {
	r := &recorded{external: o.ExternalLabels}
	r.tracker = tracker[model.LabelSet]{lookback: o.Lookback.Milliseconds(), skip: skip, about: r.about}
	return r
}

func (r *recorded) about(of labels.Labels) (model.LabelSet, bool) {
	set := labelSet(of)
	delete(set, model.MetricNameLabel)
	delete(set, stateLabel)
	return set, true
}

// run gives the alerts that changed from from (included) until until (excluded), in order of time.
func (r *recorded) run(ctx context.Context, data storage.Queryable, from, until int64) ([]alertChange, error) {
	first := r.tracker.known == nil
	changes, err := r.tracker.read(ctx, data, from, until, firing()...)
	if err != nil {
		return nil, err
	}
	var before map[uint64]*fired
	if first {
		if before, err = r.firedBefore(ctx, data, from, changes); err != nil {
			return nil, err
		}
	}
	changes = append(changes, r.tracker.ends(until)...)
	slices.SortStableFunc(changes, func(a, b change[model.LabelSet]) int { return cmp.Compare(a.at, b.at) })
	var out []alertChange
	for _, c := range changes {
		alert := Alert{Labels: withExternal(c.series.of, r.external), StartsAt: time.UnixMilli(c.at).UTC()}
		if !c.there {
			alert.StartsAt, alert.EndsAt = time.UnixMilli(c.series.since).UTC(), alert.StartsAt
		}
		c.apply()
		if key := c.series.labels.Hash(); c.there && before[key] != nil {
			c.series.since = before[key].since
			alert.StartsAt = time.UnixMilli(c.series.since).UTC()
			delete(before, key) // what ends and begins again is another one
		}
		out = append(out, alertChange{at: c.at, Alert: alert})
	}
	return out, nil
}

// firing selects the alerts that fire.
func firing() []*labels.Matcher {
	return []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, alertsMetric),
		labels.MustNewMatcher(labels.MatchEqual, stateLabel, "firing"),
	}
}

// withExternal adds the external labels that an alert does not have, as Prometheus does when it sends one.
func withExternal(of, external model.LabelSet) model.LabelSet { return external.Merge(of) }
