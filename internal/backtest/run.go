package backtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"drydock.dev/drydock/internal/backtest/history"
)

// Named is a configuration with its name in the report.
type Named struct {
	Name string
	Options
}

// The source may read this many moments before a replay uses them.
const ahead = 256

// Backtest replays the past twice with each configuration: with steps that do nothing, and with
// steps that cure their nodes. It reads the past once for all replays, which run at the same time.
func Backtest(ctx context.Context, source history.Source, from, until time.Time, configs ...Named) (*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all []*Replay
	var names []string
	for _, c := range configs {
		for _, curing := range []bool{false, true} {
			o := c.Options
			o.Curing = curing
			all, names = append(all, New(o, from)), append(names, c.Name)
		}
	}
	var done sync.WaitGroup
	feeds := make([]chan history.Moment, len(all))
	for i, r := range all {
		feeds[i] = make(chan history.Moment, ahead)
		done.Go(func() {
			for m := range feeds[i] {
				if err := r.Feed(ctx, m); err != nil {
					cancel(err)
				}
			}
			if err := r.Until(ctx, until); err != nil {
				cancel(err)
			}
			r.Finish(until)
		})
	}
	shown := shownLabels{}
	err := source.Moments(ctx, from, until, func(m history.Moment) error {
		shown.of(m.Nodes)
		for _, feed := range feeds {
			select {
			case feed <- m:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for _, feed := range feeds {
		close(feed)
	}
	done.Wait()
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out := &Report{
		From: from.UTC(), Until: until.UTC(), Gaps: all[0].gaps, Skipped: source.Skipped(),
		Assumptions: ofEach(configs, func(o *Options) []string { return append(assumptions(*o), shown.missing(o.Config)...) }),
		NotReplayed: ofEach(configs, func(o *Options) []string { return notReplayed(o.Config) }),
	}
	for i, r := range all {
		out.Runs = append(out.Runs, r.answer(names[i]))
	}
	if len(configs) > 1 {
		out.Differences = differences(out.Runs[0].Repairs, out.Runs[2].Repairs)
	}
	return out, nil
}

// ofEach returns each sentence once. A sentence that is not true for all configurations begins with
// the name of its own.
func ofEach(configs []Named, say func(*Options) []string) (out []string) {
	said := make([][]string, len(configs))
	for i := range configs {
		said[i] = say(&configs[i].Options)
	}
	for i, sentences := range said {
		for _, sentence := range sentences {
			switch {
			case slices.ContainsFunc(said, func(others []string) bool { return !slices.Contains(others, sentence) }):
				out = append(out, configs[i].Name+": "+sentence)
			case i == 0:
				out = append(out, sentence)
			}
		}
	}
	return out
}
