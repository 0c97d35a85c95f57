package history

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// back is how much is read at once of the time before the reading.
const back = 6 * time.Hour

// fired is since when an alert fires that fires at the beginning of the reading, as far as it is known.
type fired struct {
	since int64
	done  bool
}

// firedBefore says since when the first alert of each series fires, where it may have begun before the reading, by the series' hash. began
// are the changes of the series, those of each in order of time.
func (r *recorded) firedBefore(
	ctx context.Context, data storage.Queryable, from int64, began []change[model.LabelSet],
) (map[uint64]*fired, error) {
	all := map[uint64]*fired{}
	for _, c := range began {
		if key := c.series.labels.Hash(); c.there && all[key] == nil {
			all[key] = &fired{since: c.at, done: c.at-from > r.tracker.lookback}
		}
	}
	// A staleness marker may be between the beginning of the reading and the first sample: it ends what fired before.
	for end := from + r.tracker.lookback + 1; open(all); end -= back.Milliseconds() {
		if err := r.walkBack(ctx, data, end-back.Milliseconds(), end, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// walkBack follows the alerts that are not done back through that time, at whose end or before it their first known sample is.
func (r *recorded) walkBack(ctx context.Context, data storage.Queryable, from, until int64, all map[uint64]*fired) error {
	querier, err := data.Querier(from, until-1)
	if err != nil {
		return err
	}
	defer querier.Close()
	seen := map[uint64]bool{}
	set := querier.Select(ctx, false, &storage.SelectHints{Start: from, End: until - 1}, firing()...)
	var samples chunkenc.Iterator
	for set.Next() {
		key := set.At().Labels().Hash()
		f := all[key]
		if f == nil || f.done {
			continue
		}
		seen[key] = true
		began, last := int64(0), int64(0) // of the samples that follow one another
		samples = set.At().Iterator(samples)
		for kind := samples.Next(); kind != chunkenc.ValNone; kind = samples.Next() {
			switch when, v := samples.At(); {
			case kind != chunkenc.ValFloat || when < from || when >= min(until, f.since):
			case value.IsStaleNaN(v):
				began, last = 0, 0
			case last == 0 || when-last > r.tracker.lookback:
				began, last = when, when
			default:
				last = when
			}
		}
		if err := samples.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", set.At().Labels(), err)
		}
		if last == 0 || f.since-last > r.tracker.lookback {
			f.done = true
			continue
		}
		f.since, f.done = began, began-from > r.tracker.lookback
	}
	for key, f := range all {
		f.done = f.done || !seen[key]
	}
	return set.Err()
}

func open(all map[uint64]*fired) bool {
	for _, f := range all {
		if !f.done {
			return true
		}
	}
	return false
}
