package history

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/rules"
)

// Evaluated gives the alerts alone, of rules that are evaluated at multiples of their interval from from on, as promtool
// does it.
func (p *Past) Evaluated(ctx context.Context, from, until time.Time, yield func(time.Time, Alert)) error {
	if err := p.begin(); err != nil {
		return err
	}
	p.evaluator.slot = func(_ *rules.Group, at time.Time) time.Time { return at }
	p.evaluator.start(from)
	for at := from; at.Before(until); at = at.Add(7 * time.Minute) {
		changes, err := p.evaluator.run(ctx, at.Add(7*time.Minute))
		if err != nil {
			return err
		}
		for _, c := range changes {
			yield(time.UnixMilli(c.at).UTC(), c.Alert)
		}
	}
	return nil
}
