package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Moments is part of Source.
func (p *Past) Moments(ctx context.Context, from, until time.Time, yield func(Moment) error) error {
	from, until = from.UTC().Truncate(time.Millisecond), until.UTC().Truncate(time.Millisecond)
	if !from.Before(until) {
		return errors.New("the time to read is empty: its end is not after its beginning")
	}
	start, first := from, false
	if p.reading == nil || !p.until.Equal(from) {
		if err := p.begin(); err != nil {
			return err
		}
		first = true
		// All that is there at from has had a sample in the lookback before it. Rules need longer.
		start = from.Add(-p.options.Lookback)
		if p.evaluator != nil {
			start = from.Add(-max(p.options.Lookback, p.evaluator.warmUp()))
			p.evaluator.start(start)
		}
	}
	p.until = time.Time{} // not known, until all went well
	read := func(at time.Time) {
		if p.options.Progress != nil {
			p.options.Progress(max(0, at.Sub(from)), until.Sub(from))
		}
	}
	read(from)
	if first {
		if err := p.chunks(ctx, start, from.Add(time.Millisecond), p.settle, read); err != nil {
			return err
		}
		if p.fleet.gap {
			p.gap, p.before = &Moment{}, p.whole(from)
		} else if err := yield(p.whole(from)); err != nil {
			return err
		}
		start = from.Add(time.Millisecond)
	} else if p.gap != nil {
		p.before = Moment{At: from}
	}
	err := p.chunks(ctx, start, until, func(m Moment, ended bool) error {
		return p.tell(m, ended, yield)
	}, read)
	if err != nil {
		return err
	}
	if p.gap != nil {
		if err := yield(p.gapUntil(until)); err != nil {
			return err
		}
	}
	p.until = until
	return nil
}

const whyGap = "there is no data of kube-state-metrics"

// chunks reads the time chunk by chunk. It calls each with what changed at an instant, and whether a gap ended there, and read with the
// time up to which all was read.
func (p *Past) chunks(ctx context.Context, from, until time.Time, each func(m Moment, ended bool) error, read func(time.Time)) error {
	for at := from; at.Before(until); {
		next := at.Add(p.chunk())
		if next.After(until) {
			next = until
		}
		nodes, err := p.fleet.run(ctx, p.data, at.UnixMilli(), next.UnixMilli())
		if err != nil {
			return err
		}
		var alerts []alertChange
		if p.recorded != nil {
			alerts, err = p.recorded.run(ctx, p.data, at.UnixMilli(), next.UnixMilli())
		} else {
			alerts, err = p.evaluator.run(ctx, next)
		}
		if err != nil {
			return err
		}
		for len(nodes)+len(alerts) > 0 {
			if err := each(take(&nodes, &alerts)); err != nil {
				return err
			}
		}
		at = next
		if err := p.passed(at.Add(-p.looksBack()).UnixMilli()); err != nil {
			return err
		}
		read(at)
	}
	return nil
}

// lastShown is when kube-state-metrics last showed a Node, from from (included) until until (excluded); zero: never.
func (p *Past) lastShown(ctx context.Context, from, until time.Time) (time.Time, error) {
	for length := p.options.Lookback; from.Before(until); length = p.chunk() {
		begin := until.Add(-length)
		if begin.Before(from) {
			begin = from
		}
		querier, err := p.data.Querier(begin.UnixMilli(), until.UnixMilli()-1)
		if err != nil {
			return time.Time{}, err
		}
		at, err := lastSample(querier.Select(ctx, false, nil, shownNodes(metricInfo)...), begin.UnixMilli(), until.UnixMilli())
		if err := errors.Join(err, querier.Close()); err != nil {
			return time.Time{}, fmt.Errorf("reading %s: %w", metricInfo, err)
		}
		if at != 0 {
			return time.UnixMilli(at).UTC(), nil
		}
		until = begin
	}
	return time.Time{}, nil
}

// lastSample is when the last sample of any of the series is, from from (included) until until (excluded); 0: there is none.
func lastSample(set storage.SeriesSet, from, until int64) (last int64, err error) {
	var samples chunkenc.Iterator
	for set.Next() {
		samples = set.At().Iterator(samples)
		for kind := samples.Next(); kind != chunkenc.ValNone; kind = samples.Next() {
			if at := samples.AtT(); at >= from && at < until {
				last = max(last, at)
			}
		}
		if err := samples.Err(); err != nil {
			return 0, err
		}
	}
	return last, set.Err()
}

// looksBack is how far back what is read at a time reaches.
func (p *Past) looksBack() time.Duration {
	if p.evaluator == nil {
		return p.options.Lookback
	}
	return max(p.options.Lookback, p.evaluator.look)
}

// take takes the changes of the next instant.
func take(nodes *[]nodeChange, alerts *[]alertChange) (Moment, bool) {
	var at int64
	switch {
	case len(*nodes) == 0:
		at = (*alerts)[0].at
	case len(*alerts) == 0:
		at = (*nodes)[0].at
	default:
		at = min((*nodes)[0].at, (*alerts)[0].at)
	}
	m, ended := Moment{At: time.UnixMilli(at).UTC()}, false
	if len(*nodes) > 0 && (*nodes)[0].at == at {
		change := (*nodes)[0]
		*nodes = (*nodes)[1:]
		m.Nodes, m.Gone, ended = change.nodes, change.gone, change.ended
		if change.began {
			m.Gap = &Gap{Why: whyGap}
		}
	}
	for len(*alerts) > 0 && (*alerts)[0].at == at {
		m.Alerts = append(m.Alerts, (*alerts)[0].Alert)
		*alerts = (*alerts)[1:]
	}
	slices.SortStableFunc(m.Alerts, Alert.compare)
	return m, ended
}

// settle takes over what changed, before the time that is asked for.
func (p *Past) settle(m Moment, _ bool) error {
	p.know(m)
	return nil
}

func (p *Past) know(m Moment) {
	for _, node := range m.Nodes {
		p.nodes[node.Name] = node
	}
	for _, name := range m.Gone {
		delete(p.nodes, name)
	}
	for _, alert := range m.Alerts {
		if alert.EndsAt.IsZero() {
			p.alerts[alert.Labels.String()] = alert
		} else {
			delete(p.alerts, alert.Labels.String())
		}
	}
}

// whole is the first moment.
func (p *Past) whole(at time.Time) Moment {
	m := Moment{At: at}
	for _, name := range sortedKeys(p.nodes) {
		m.Nodes = append(m.Nodes, p.nodes[name])
	}
	m.Alerts = slices.SortedFunc(maps.Values(p.alerts), Alert.compare)
	return m
}

// tell gives a moment, or keeps it where there is a gap: it is told at the gap's end.
func (p *Past) tell(m Moment, ended bool, yield func(Moment) error) error {
	if p.gap == nil && m.Gap == nil {
		p.know(m)
		return yield(m)
	}
	if p.gap == nil {
		p.gap, p.before = &Moment{}, Moment{At: m.At}
	}
	p.gap.Alerts = append(p.gap.Alerts, m.Alerts...)
	p.gap.Nodes = append(p.gap.Nodes, m.Nodes...)
	p.gap.Gone = append(p.gap.Gone, m.Gone...)
	if !ended {
		return nil
	}
	if err := yield(p.gapUntil(m.At)); err != nil {
		return err
	}
	held := *p.gap
	p.gap = nil
	held.At = m.At
	held.Alerts = p.changed(held.Alerts)
	p.know(held)
	return yield(held)
}

func (p *Past) gapUntil(until time.Time) Moment {
	m := p.before
	m.Gap = &Gap{Until: until, Why: whyGap}
	return m
}

// changed are the alerts that are otherwise after a gap than they were before it.
func (p *Past) changed(alerts []Alert) []Alert {
	last := map[string]Alert{}
	for _, alert := range alerts {
		last[alert.Labels.String()] = alert
	}
	var out []Alert
	for _, key := range sortedKeys(last) {
		before, fired := p.alerts[key]
		if alert := last[key]; fired && !before.same(alert) || !fired && alert.EndsAt.IsZero() {
			out = append(out, alert)
		}
	}
	return out
}
