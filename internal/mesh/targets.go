package mesh

import (
	"hash/maphash"
	"slices"
)

const (
	siblingsARound = 3
	// If there are more other locations, they take turns.
	locationsARound = 32
	mostTargets     = 2*locationsARound + 1 + siblingsARound
)

// Targets returns the nodes to probe in a round: the leader and one member of each other location,
// and the leader and some siblings of the own location. Members take turns, and seed decides which
// one is first, so that agents do not all probe the same member.
func Targets(t Topology, round uint64, seed maphash.Seed) []string {
	self, ok := t.Nodes[t.Self]
	if !ok {
		return nil
	}
	var out []string
	lead := func(location string) {
		if name, ok := t.leader(location); ok {
			out = append(out, name)
		}
	}
	far := t.locationsBut(self.Location)
	// turn is how many times this agent has already probed the locations of this round.
	turns, turn := uint64(1), round
	if n := len(far); n > locationsARound {
		turns = uint64((n + locationsARound - 1) / locationsARound)
		turn = round / turns
	}
	for i, location := range far {
		if uint64(i)%turns != round%turns {
			continue
		}
		lead(location)
		out = append(out, pick(t.others(location), turn, 1, start(seed, location))...)
	}
	lead(self.Location)
	return append(out, pick(t.others(self.Location), round, siblingsARound, start(seed, self.Location))...)
}

// pick returns n neighboring names, or all if there are at most n. In each turn it begins where it
// ended in the turn before, and in turn 0 at start.
func pick(names []string, turn uint64, n int, start uint64) []string {
	size := uint64(len(names))
	if len(names) <= n {
		return slices.Clone(names)
	}
	out := make([]string, 0, n)
	first := start%size + (turn%size)*uint64(n)%size
	for i := range uint64(n) {
		out = append(out, names[(first+i)%size])
	}
	return out
}

func start(seed maphash.Seed, location string) uint64 { return maphash.String(seed, location) }
