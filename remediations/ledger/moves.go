package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

func (l *Ledger) reserveMove(c *remediations.Config, n *corev1.Node, r *remediations.Record, now time.Time) {
	slot := locationSlot(c, n, r, remediations.Instant(now))
	slot.Unknown = unknownOf(l.Slots, r.ID)
	l.Slots = slices.DeleteFunc(l.Slots, func(s Slot) bool { return s.Kind == remediations.KindLocation && s.Location == r.Location }) // also removes an old slot of the location, as Reserve does for a machine
	l.Slots = append(l.Slots, slot)
	l.Moved(r.Location, r.ID, remediations.Instant(now))
	l.prune(c, now)
}

func locationSlot(c *remediations.Config, n *corev1.Node, r *remediations.Record, since time.Time) Slot {
	attempt := r.Intent.ID
	if r.Back != nil {
		attempt = r.PutBackID()
	}
	return Slot{
		Kind: remediations.KindLocation, Node: n.Name, Successor: r.Intent.Successor, Location: r.Location, Policy: r.Policy, UID: string(n.UID),
		ProviderID: n.Spec.ProviderID, Zone: c.Zone(n), Pool: c.Pool(n), Repair: r.ID, Attempt: attempt, Since: since,
	}
}

// Moved records that the repair moved the leadership. Only the last move of each repair is stored.
func (l *Ledger) Moved(location, repair string, when time.Time) {
	if l.Moves == nil {
		l.Moves = map[string][]Begun{}
	}
	all := l.Moves[location]
	i := slices.IndexFunc(all, func(b Begun) bool { return b.Repair == repair })
	switch {
	case i < 0:
		l.Moves[location] = append(all, Begun{Repair: repair, At: when})
	case all[i].At.Before(when):
		all[i].At = when
	}
}

// LastMove ignores the repair with the id except. It is zero if there was no move.
func (l *Ledger) LastMove(location, except string) (last Begun) {
	for _, b := range l.Moves[location] {
		if b.Repair != except && b.At.After(last.At) {
			last = b
		}
	}
	return last
}

// KnowsMove reports whether the ledger shows that the repair on the node moved the leadership.
func (l *Ledger) KnowsMove(node string, r *remediations.Record) bool {
	return slices.ContainsFunc(l.Slots, func(s Slot) bool {
		return s.Kind == remediations.KindLocation && s.Node == node && s.Location == r.Location && s.Repair == r.ID
	}) || slices.ContainsFunc(l.Moves[r.Location], func(b Begun) bool { return b.Repair == r.ID })
}

// rebuildMoves uses the end of a repair as the time of its move, because that time is unknown.
func (l *Ledger) rebuildMoves(c *remediations.Config, n *corev1.Node, j remediations.Journal) {
	for _, e := range j.Whole() {
		if e.Location != "" && len(e.Steps) > 0 {
			l.Moved(e.Location, e.ID, e.Ended)
		}
	}
	r := j.Location()
	if r == nil || r.Intent == nil {
		return
	}
	when := r.Intent.At
	if r.Back != nil && r.Back.After(when) {
		when = *r.Back
	}
	l.Moved(r.Location, r.ID, when)
	if r.Phase.InFlight() {
		l.Slots = append(l.Slots, locationSlot(c, n, r, r.Since))
	}
	if r.Phase == remediations.PhaseExhausted {
		l.Finished(r.Policy, r.ID, remediations.OutcomeExhausted)
	}
}

// ReplacingName reports whether the machine of a Node with that name is being replaced.
func (l *Ledger) ReplacingName(node string) bool {
	return slices.ContainsFunc(l.Orphans, func(o Orphan) bool { return o.Node == node })
}
