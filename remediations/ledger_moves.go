package remediations

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func (l *Ledger) reserveMove(c *Config, n *corev1.Node, r *Record, now time.Time) {
	l.ReleaseLocation(n.Name)
	l.Slots = append(l.Slots, locationSlot(c, n, r, Instant(now)))
	l.Moved(r.Location, r.ID, Instant(now))
	l.prune(c, now)
}

func locationSlot(c *Config, n *corev1.Node, r *Record, since time.Time) Slot {
	attempt := r.Intent.ID
	if r.Back != nil {
		attempt = r.PutBackID()
	}
	return Slot{
		Kind: KindLocation, Node: n.Name, Successor: r.Intent.Successor, Location: r.Location, Policy: r.Policy, UID: string(n.UID),
		ProviderID: n.Spec.ProviderID, Zone: c.Zone(n), Pool: c.Pool(n), Repair: r.ID, Attempt: attempt, Since: since,
	}
}

// moved counts a move against its location; of each repair the last one.
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

// LastMove is when another repair than the one named last moved the location's leadership; zero: it is not known to have.
func (l *Ledger) LastMove(location, except string) (last Begun) {
	for _, b := range l.Moves[location] {
		if b.Repair != except && b.At.After(last.At) {
			last = b
		}
	}
	return last
}

// KnowsMove says that the repair on the node moved the location's leadership by the ledger's own account: it holds a slot
// for that, or is counted among the location's moves.
func (l *Ledger) KnowsMove(node string, r *Record) bool {
	return slices.ContainsFunc(l.Slots, func(s Slot) bool {
		return s.Kind == KindLocation && s.Node == node && s.Location == r.Location && s.Repair == r.ID
	}) || slices.ContainsFunc(l.Moves[r.Location], func(b Begun) bool { return b.Repair == r.ID })
}

// ReleaseLocation frees the slot of the leader's repair that is recorded on the node; it says whether there was one.
func (l *Ledger) ReleaseLocation(node string) bool {
	before := len(l.Slots)
	l.Slots = slices.DeleteFunc(l.Slots, func(s Slot) bool { return s.Kind == KindLocation && s.Node == node })
	return len(l.Slots) != before
}

// rebuildMoves is the part of RebuildLedger that speaks of leaders. An ended repair counts from its end: when its last
// move was is not known any more.
func (l *Ledger) rebuildMoves(c *Config, n *corev1.Node, j Journal) {
	for _, e := range j.History {
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
	if r.Phase == Exhausted {
		l.Finished(r.Policy, r.ID, OutcomeExhausted)
	}
}

// ReplacingName says that the machine of a Node of that name is being replaced.
func (l *Ledger) ReplacingName(node string) bool {
	return slices.ContainsFunc(l.Orphans, func(o Orphan) bool { return o.Node == node })
}

// leading is a repair of a location's leader, as the other decisions of a pass must know of it.
type leading struct {
	repair, location string
	// nodes keep node repairs off: the one that led and those that were to.
	nodes   []string
	wouldBe bool
}

func (f *Fleet) leadByRecord(node string, r *Record, now time.Time) {
	switch {
	case r == nil:
	case r.Phase.InFlight():
		f.OccupyLocation(node, r, false)
	case now.Before(f.roster.config.WouldUntil(f.roster.config.Policy(r.Policy), r)):
		f.OccupyLocation(node, r, true)
	}
}

func (f *Fleet) leadBySlot(s Slot) {
	if l, ok := f.leading[s.Node]; !ok || l.wouldBe {
		f.leading[s.Node] = leading{repair: s.Repair, location: s.Location, nodes: []string{s.Node, s.Successor}}
	}
}

// OccupyLocation counts a repair of a location that this pass has just begun or, in observe mode, would have begun.
func (f *Fleet) OccupyLocation(node string, r *Record, wouldBe bool) {
	if l, ok := f.leading[node]; ok && wouldBe && !l.wouldBe {
		return // as for nodes
	}
	l := leading{repair: r.ID, location: r.Location, nodes: []string{node}, wouldBe: wouldBe}
	l.nodes = append(l.nodes, r.Successors()...)
	f.leading[node] = l
}

// VacateLocation takes a repair of a location out of the count that this pass has just ended.
func (f *Fleet) VacateLocation(node string) { delete(f.leading, node) }

// locationRepairOn is the repair of a location that keeps others from the node; empty: there is none.
func (f *Fleet) locationRepairOn(node string) string {
	for _, on := range slices.Sorted(maps.Keys(f.leading)) {
		l := f.leading[on]
		if !l.wouldBe && slices.Contains(l.nodes, node) {
			return fmt.Sprintf("repair %s moves the mesh leadership of location %s, with node %s in it", l.repair, l.location, node)
		}
	}
	return ""
}

// LocationRepairIn is the repair of the location's leader that is recorded on another node; empty: there is none.
func (f *Fleet) LocationRepairIn(location, node string) string {
	for _, on := range slices.Sorted(maps.Keys(f.leading)) {
		if l := f.leading[on]; !l.wouldBe && on != node && l.location == location {
			return fmt.Sprintf("repair %s of this location is under way, recorded on node %s", l.repair, on)
		}
	}
	return ""
}

// NodeRepairOn says that the node itself is under repair.
func (f *Fleet) NodeRepairOn(node string) bool {
	p, ok := f.occupied[node]
	return ok && !p.wouldBe
}

// LocationsAtLimit says that no further location may be repaired; empty: one may.
func (f *Fleet) LocationsAtLimit(c *Config, node string, observing bool) string {
	count, busy := 0, ""
	for _, on := range slices.Sorted(maps.Keys(f.leading)) {
		l := f.leading[on]
		if on == node || (l.wouldBe && !observing) {
			continue
		}
		if count++; busy == "" {
			busy = l.location
		}
	}
	if count < c.Limits.Locations.Concurrent {
		return ""
	}
	return fmt.Sprintf("%d of at most %d mesh leaders are under repair (location %s); limits.leaders.concurrent is %d", count, c.Limits.Locations.Concurrent, busy, c.Limits.Locations.Concurrent)
}
