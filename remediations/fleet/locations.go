package fleet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

type leading struct {
	repair, location string
	// nodes must not be repaired while the leadership moves: the first leader, and those that lead
	// after it or will.
	nodes   []string
	wouldBe bool
}

func (f *Fleet) leadByRecord(node string, r *remediations.Record, now time.Time) {
	switch {
	case r.Phase.InFlight():
		f.OccupyLocation(node, r, false)
	case now.Before(f.roster.config.WouldUntil(f.roster.config.Policy(r.Policy), r)):
		f.OccupyLocation(node, r, true)
	}
}

func (f *Fleet) leadBySlot(s ledger.Slot) {
	if l, ok := f.leading[s.Node]; !ok || l.wouldBe {
		f.leading[s.Node] = leading{repair: s.Repair, location: s.Location, nodes: []string{s.Node, s.Successor}}
	}
}

// OccupyLocation counts a repair that this pass has begun, or would have begun in observe mode.
func (f *Fleet) OccupyLocation(node string, r *remediations.Record, wouldBe bool) {
	if _, ok := f.leading[node]; ok && wouldBe {
		return // a repair in flight counts until its end is written
	}
	l := leading{repair: r.ID, location: r.Location, nodes: []string{node}, wouldBe: wouldBe}
	l.nodes = append(l.nodes, r.Successors()...)
	f.leading[node] = l
}

// VacateLocation stops counting the location's repair. node has the repair's record.
func (f *Fleet) VacateLocation(node string) { delete(f.leading, node) }

// LocationRepairOn returns a message if the node takes part in a move of mesh leadership and must
// not be repaired.
func (f *Fleet) LocationRepairOn(node string) string {
	for _, on := range slices.Sorted(maps.Keys(f.leading)) {
		l := f.leading[on]
		if !l.wouldBe && slices.Contains(l.nodes, node) {
			return fmt.Sprintf("repair %s moves the mesh leadership of location %s, and node %s takes part in the move", l.repair, l.location, node)
		}
	}
	return ""
}

// LocationRepairIn returns a message if another node has a repair of this location on record.
func (f *Fleet) LocationRepairIn(location, node string) string {
	for _, on := range slices.Sorted(maps.Keys(f.leading)) {
		if l := f.leading[on]; !l.wouldBe && on != node && l.location == location {
			return fmt.Sprintf("repair %s of this location is under way, recorded on node %s", l.repair, on)
		}
	}
	return ""
}

// NodeRepairOn reports whether the node itself is under repair. A repair that waits while its node
// is drained does not count.
func (f *Fleet) NodeRepairOn(node string) bool {
	p, ok := f.occupied[node]
	return ok && !p.wouldBe && !p.parked
}

// LocationsAtLimit returns a message if limits.leaders.concurrent allows no further repair.
func (f *Fleet) LocationsAtLimit(c *remediations.Config, node string, observing bool) string {
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
	return fmt.Sprintf("mesh leaders under repair: %d of at most %d (location %s); limits.leaders.concurrent is %d", count, c.Limits.Locations.Concurrent, busy, c.Limits.Locations.Concurrent)
}
