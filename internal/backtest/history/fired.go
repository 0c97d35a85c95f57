package history

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// back is how much is read at once of the time before the reading.
const back = 6 * time.Hour

// fired is when an alert that fires at the beginning of the reading began to fire, as far as it is known.
type fired struct {
	// activeAt is when it became active: it fires from then or later, because its rule may have a for.
	activeAt, since int64
	done            bool
}

// firedBefore says when the alerts began to fire that fire at the beginning of the reading, by their series. An alert of which
// Prometheus has recorded nothing in ALERTS_FOR_STATE is not among them: since when it is active is not known.
func (r *recorded) firedBefore(
	ctx context.Context, data storage.Queryable, from, until int64, began []change[model.LabelSet],
) (map[uint64]*fired, error) {
	all := map[uint64]*fired{}
	for _, c := range began {
		if key := alertKey(c.series.labels); c.there && all[key] == nil {
			all[key] = &fired{since: c.at, done: true}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	err := eachSeries(ctx, data, from, until, alertsForState, func(key uint64, samples chunkenc.Iterator) error {
		f := all[key]
		if f == nil {
			return nil
		}
		for kind := samples.Next(); kind != chunkenc.ValNone; kind = samples.Next() {
			if when, v := samples.At(); kind == chunkenc.ValFloat && when <= f.since && !value.IsStaleNaN(v) {
				f.activeAt = int64(v) * 1000
				f.done = f.activeAt >= from
			}
		}
		return samples.Err()
	})
	for end := from; err == nil && open(all); end -= back.Milliseconds() {
		err = r.walkBack(ctx, data, end-back.Milliseconds(), end, all)
	}
	return all, err
}

// walkBack follows the alerts that are not done through the time before the one that was read last.
func (r *recorded) walkBack(ctx context.Context, data storage.Queryable, from, until int64, all map[uint64]*fired) error {
	seen := map[uint64]bool{}
	err := eachSeries(ctx, data, from, until, alertsMetric, func(key uint64, samples chunkenc.Iterator) error {
		f := all[key]
		if f == nil || f.done {
			return nil
		}
		seen[key] = true
		began, last := int64(0), int64(0) // of the samples that follow one another
		for kind := samples.Next(); kind != chunkenc.ValNone; kind = samples.Next() {
			switch when, v := samples.At(); {
			case kind != chunkenc.ValFloat || when < f.activeAt || when < from || when >= until:
			case value.IsStaleNaN(v):
				began, last = 0, 0
			case last == 0 || when-last > r.tracker.lookback:
				began, last = when, when
			default:
				last = when
			}
		}
		if last == 0 || f.since-last > r.tracker.lookback {
			f.done = true
			return samples.Err()
		}
		f.since = began
		f.done = began-from > r.tracker.lookback
		return samples.Err()
	}, labels.MustNewMatcher(labels.MatchEqual, stateLabel, "firing"))
	for key, f := range all {
		f.done = f.done || !seen[key]
	}
	return err
}

func open(all map[uint64]*fired) bool {
	for _, f := range all {
		if !f.done {
			return true
		}
	}
	return false
}

// eachSeries calls do with each series of the metric from from (included) until until (excluded), by the key of its alert.
func eachSeries(
	ctx context.Context, data storage.Queryable, from, until int64, metric string,
	do func(key uint64, samples chunkenc.Iterator) error, matchers ...*labels.Matcher,
) error {
	querier, err := data.Querier(from, until-1)
	if err != nil {
		return err
	}
	defer querier.Close()
	matchers = append(matchers, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, metric))
	set := querier.Select(ctx, false, &storage.SelectHints{Start: from, End: until - 1}, matchers...)
	for set.Next() {
		if err := do(alertKey(set.At().Labels()), set.At().Iterator(nil)); err != nil {
			return fmt.Errorf("reading %s: %w", set.At().Labels(), err)
		}
	}
	return set.Err()
}

// alertKey is the same for all series that Prometheus records of one alert.
func alertKey(of labels.Labels) uint64 {
	key, _ := of.HashWithoutLabels(nil, stateLabel)
	return key
}
