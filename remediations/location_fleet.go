package remediations

import (
	"fmt"
	"maps"
	"slices"
)

// leading is a repair of a location's leader, as the other decisions of a pass must know of it.
type leading struct {
	repair, location string
	// nodes keep node repairs off: the one that led and those that were to.
	nodes   []string
	wouldBe bool
}

func (f *Fleet) leadByRecord(node string, r *Record) {
	switch {
	case r == nil:
	case r.Phase.InFlight():
		f.OccupyLocation(node, r, false)
	case r.Phase == Pending && r.Hold != nil && r.Hold.Reason == Observing:
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
	l.nodes = append(l.nodes, r.successors()...)
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

// locationRepairIn is the repair of the location's leader that is recorded on another node; empty: there is none.
func (f *Fleet) locationRepairIn(location, node string) string {
	for _, on := range slices.Sorted(maps.Keys(f.leading)) {
		if l := f.leading[on]; !l.wouldBe && on != node && l.location == location {
			return fmt.Sprintf("repair %s of this location is under way, recorded on node %s", l.repair, on)
		}
	}
	return ""
}

// nodeRepairOn says that the node itself is under repair.
func (f *Fleet) nodeRepairOn(node string) bool {
	p, ok := f.occupied[node]
	return ok && !p.wouldBe
}

// locationsAtLimit says that no further location may be repaired; empty: one may.
func (f *Fleet) locationsAtLimit(c *Config, node string, observing bool) string {
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
