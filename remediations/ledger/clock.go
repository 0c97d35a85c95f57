package ledger

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Clamp sets future times to now, and reports whether there were any. A leader whose clock is ahead
// writes such times, and they would hold repairs too long. The caller must first check that now is
// right.
func (l *Ledger) Clamp(now time.Time) (changed bool) {
	clamp := remediations.ClampTo(now, &changed)
	begun := func(all []Begun) {
		for i := range all {
			clamp(&all[i].At)
		}
	}
	for i := range l.Slots {
		clamp(&l.Slots[i].Since)
	}
	for _, all := range l.Repairs {
		begun(all)
	}
	for _, all := range l.Moves {
		begun(all)
	}
	begun(l.Wide)
	for machine, ends := range l.Ends {
		l.Ends[machine] = slices.Clone(ends)
		for i := range ends {
			clamp(&l.Ends[machine][i].At)
			clamp(&l.Ends[machine][i].Seen)
		}
	}
	for i := range l.Orphans {
		o := &l.Orphans[i]
		o.Record = *o.Record.Clone()
		clamp(&o.Record.Began)
		clamp(&o.Record.Since)
		if o.Record.Intent != nil {
			clamp(&o.Record.Intent.At)
		}
	}
	for scope, b := range l.Status.Breakers {
		clamp(&b.Since)
		clamp(&b.Quiet)
		clamp(&b.Seen)
		l.Status.Breakers[scope] = b
	}
	for node, g := range l.Status.BreakGlass {
		clamp(&g.Since)
		l.Status.BreakGlass[node] = g
	}
	clamp(&l.Status.SelfTest.Since)
	return changed
}

// Ahead reports whether any time in the ledger is in the future.
func (l *Ledger) Ahead(now time.Time) bool {
	c := l.Clone()
	for i := range c.Orphans {
		c.Orphans[i].Record = *c.Orphans[i].Record.Clone()
	}
	return c.Clamp(now)
}
