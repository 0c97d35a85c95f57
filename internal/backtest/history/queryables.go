package history

import (
	"context"
	"errors"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// appendable takes what the rules make.
type appendable struct{ *evaluator }

func (a appendable) Appender(ctx context.Context) storage.Appender {
	return noting{a.made.Appender(ctx), a.evaluator}
}

// noting notes when something is made.
type noting struct {
	storage.Appender
	*evaluator
}

func (n noting) Append(ref storage.SeriesRef, of labels.Labels, at int64, v float64) (storage.SeriesRef, error) {
	n.lastly[maker(of)], n.wrote = at, true
	return n.Appender.Append(ref, of, at, v)
}

func (n noting) Commit() error {
	for _, m := range n.ending[n.asked] {
		if _, err := n.Append(0, m.of, m.at, math.Float64frombits(value.StaleNaN)); err != nil {
			return errors.Join(err, n.Rollback())
		}
	}
	delete(n.ending, n.asked)
	return n.Appender.Commit()
}

func (n noting) AppendHistogram(
	ref storage.SeriesRef, of labels.Labels, at int64, h *histogram.Histogram, f *histogram.FloatHistogram,
) (storage.SeriesRef, error) {
	n.lastly[maker(of)], n.wrote = at, true
	return n.Appender.AppendHistogram(ref, of, at, h, f)
}

// both is the past together with what the rules make.
type both struct{ *evaluator }

func (b both) Querier(from, until int64) (storage.Querier, error) {
	past, err := b.past.Querier(from, until)
	if err != nil || b.made.NumSeries() == 0 {
		return past, err
	}
	made, err := tsdb.NewBlockQuerier(tsdb.NewRangeHead(b.made, from, until), from, until)
	if err != nil {
		return nil, err
	}
	return storage.NewMergeQuerier([]storage.Querier{past, made}, nil, storage.ChainedSeriesMerge), nil
}

// hidden is a store without the series for which hide is true.
type hidden struct {
	storage.Queryable
	hide func(labels.Labels) bool
}

func (h hidden) Querier(from, until int64) (storage.Querier, error) {
	querier, err := h.Queryable.Querier(from, until)
	if err != nil {
		return nil, err
	}
	return hidingQuerier{querier, h.hide}, nil
}

type hidingQuerier struct {
	storage.Querier
	hide func(labels.Labels) bool
}

func (q hidingQuerier) Select(
	ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	return hidingSet{q.Querier.Select(ctx, sorted, hints, matchers...), q.hide}
}

type hidingSet struct {
	storage.SeriesSet
	hide func(labels.Labels) bool
}

func (s hidingSet) Next() bool {
	for s.SeriesSet.Next() {
		if !s.hide(s.At().Labels()) {
			return true
		}
	}
	return false
}
