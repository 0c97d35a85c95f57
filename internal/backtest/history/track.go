package history

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// series is one series of Prometheus, as far as it has been read. It is there from its first sample until a staleness
// marker, or until it has had no sample for the lookback.
type series[T any] struct {
	labels labels.Labels
	of     T // what the series says something about
	value  float64
	there  bool
	since  int64 // the time of its last change
}

// change is an instant at which a series appeared, changed its value, or ended.
type change[T any] struct {
	at     int64
	series *series[T]
	value  float64
	there  bool
}

func (c change[T]) apply() {
	c.series.value, c.series.there, c.series.since = c.value, c.there, c.at
}

// tracker follows series from chunk to chunk, and gives only what changed.
type tracker[T any] struct {
	lookback int64
	// about says what a series is about; false where it is of no use.
	about func(labels.Labels) (T, bool)
	// skip is called for what cannot be used.
	skip func(Skip)

	known map[uint64]*cursor[T]
}

// cursor is where reading a series has come to, which may be ahead of what has been applied of it.
type cursor[T any] struct {
	*series[T]
	last  int64
	value float64
	there bool
	no    bool // of no use
}

// read gives the changes of the series that match, of the samples from from (included) until until (excluded).
func (t *tracker[T]) read(
	ctx context.Context, data storage.Queryable, from, until int64, matchers ...*labels.Matcher,
) ([]change[T], error) {
	if t.known == nil {
		t.known = map[uint64]*cursor[T]{}
	}
	querier, err := data.Querier(from, until-1)
	if err != nil {
		return nil, err
	}
	defer querier.Close()
	var out []change[T]
	var back backwards
	set := querier.Select(ctx, false, &storage.SelectHints{Start: from, End: until - 1}, matchers...)
	var samples chunkenc.Iterator
	for set.Next() {
		lset := set.At().Labels()
		at := t.cursor(lset)
		if at.no {
			continue
		}
		samples = set.At().Iterator(samples)
		for kind := samples.Next(); kind != chunkenc.ValNone; kind = samples.Next() {
			if kind != chunkenc.ValFloat {
				continue
			}
			when, v := samples.At()
			if when < from || when >= until {
				continue
			}
			if when <= at.last {
				back.saw(lset.Get(model.MetricNameLabel), when, at.last)
				continue
			}
			out = at.sample(when, v, t.lookback, out)
		}
		if err := samples.Err(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", lset, err)
		}
	}
	if err := set.Err(); err != nil {
		return nil, err
	}
	back.tell(t.skip)
	return out, nil
}

// ends gives the changes of series that have had no sample for the lookback, and forgets those that ended long ago.
func (t *tracker[T]) ends(until int64) []change[T] {
	var out []change[T]
	for hash, at := range t.known {
		switch {
		case at.there && at.last+t.lookback < until:
			out = append(out, at.end(at.last+t.lookback))
		case !at.there && at.last+12*t.lookback < until:
			delete(t.known, hash)
		}
	}
	return out
}

func (t *tracker[T]) cursor(lset labels.Labels) *cursor[T] {
	hash := lset.Hash()
	at, ok := t.known[hash]
	if !ok {
		lset = lset.Copy()
		of, useful := t.about(lset)
		at = &cursor[T]{series: &series[T]{labels: lset, of: of}, no: !useful, last: math.MinInt64}
		t.known[hash] = at
	}
	return at
}

func (c *cursor[T]) sample(when int64, v float64, lookback int64, out []change[T]) []change[T] {
	if c.there && when-c.last > lookback {
		out = append(out, c.end(c.last+lookback))
	}
	c.last = when
	switch {
	case value.IsStaleNaN(v):
		if c.there {
			out = append(out, c.end(when))
		}
	case !c.there || v != c.value:
		c.there, c.value = true, v
		out = append(out, change[T]{at: when, series: c.series, value: v, there: true})
	}
	return out
}

func (c *cursor[T]) end(at int64) change[T] {
	c.there = false
	return change[T]{at: at, series: c.series, value: c.value}
}

// backwards collects samples that are not later than the one before them.
type backwards struct {
	metric      string
	from, until int64
	count       int
}

func (b *backwards) saw(metric string, when, last int64) {
	if b.count == 0 {
		b.metric, b.from, b.until = metric, when, last
	}
	b.from, b.until = min(b.from, when), max(b.until, last)
	b.count++
}

func (b *backwards) tell(skip func(Skip)) {
	if b.count == 0 {
		return
	}
	skip(Skip{
		From: time.UnixMilli(b.from).UTC(), Until: time.UnixMilli(b.until).UTC(), What: b.metric,
		Why: fmt.Sprintf("%d samples are not later than the sample before them: a clock went back; they are not used", b.count),
	})
}
