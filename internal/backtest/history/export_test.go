package history

import (
	"context"
	"time"
)

// Evaluated gives the alerts alone, of rules that are evaluated at multiples of their interval from
// from on, as promtool does it.
func (p *Past) Evaluated(ctx context.Context, from, until time.Time, yield func(time.Time, Alert)) error {
	p.begin()
	p.start = from.UnixMilli()
	for _, r := range p.rules {
		changes, err := r.run(ctx, p, from.UnixMilli(), until.UnixMilli())
		if err != nil {
			return err
		}
		for _, c := range changes {
			yield(time.UnixMilli(c.at).UTC(), c.Alert)
		}
	}
	return nil
}

// ReadAtOnce sets how much is read at once.
func (p *Past) ReadAtOnce(d time.Duration) { p.options.span = d }

// Patient has the Past wait by this function.
func (p *Past) Patient(wait func(ctx context.Context, d time.Duration) error) { p.server.wait = wait }

// AskAboutEveryNode has the Past ask about all Nodes at each step.
func (p *Past) AskAboutEveryNode() { p.options.everyNode = true }
