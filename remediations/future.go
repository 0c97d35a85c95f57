package remediations

import "time"

// fromTheFuture says that the time was written by a clock that was wrong, if this one is right.
func fromTheFuture(t, now time.Time) bool { return t.After(now.Add(ahead)) }

// Agrees says that most kubelets' clocks agree with this one: only then may a time from the future be called wrong.
func (h *Heartbeats) Agrees(now time.Time) bool {
	return h != nil && now.Sub(h.ReadAt).Abs() <= lookFor && 2*h.Stale < h.Nodes
}

// Clamp sets each time in the ledger that lies in the future to now, and says whether there was any. A leader whose clock was
// ahead for a moment would otherwise hold repairs for as long as its clock was ahead. The caller has asked whose clock is right.
func (l *Ledger) Clamp(now time.Time) (changed bool) {
	clamp := func(t *time.Time) {
		if fromTheFuture(*t, now) {
			*t, changed = at(now), true
		}
	}
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
	for i := range l.Orphans {
		o := &l.Orphans[i]
		o.Record = *o.Record.clone()
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
	for node, g := range l.Status.Glass {
		clamp(&g.Since)
		l.Status.Glass[node] = g
	}
	clamp(&l.Status.SelfTest.Since)
	return changed
}

// Ahead says that some time in the ledger lies in the future.
func (l *Ledger) Ahead(now time.Time) bool {
	c := l.Clone()
	for i := range c.Orphans {
		c.Orphans[i].Record = *c.Orphans[i].Record.clone()
	}
	return c.Clamp(now)
}

// beyond says that the record's phase would last for longer than any does: a clock was wrong when it was written, or Drydock
// did not write it.
func (r *Record) beyond(now time.Time) bool { return r.Deadline.After(now.Add(pendingFor + ahead)) }
