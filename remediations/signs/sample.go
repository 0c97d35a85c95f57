package signs

// Sampling says from which size on a fleet's leases are judged by a random sample, how many nodes
// the sample has, and up to how many stale leases in it prove that the fleet is not blind.
type Sampling struct{ From, Size, Stale int }

// LeaseSampling keeps the cost of the first decision after a quiet while the same for every size of
// fleet. A sample only ever says that few leases are stale. Where at least half of them are, it does
// so with a probability below 2 in ten million (where 60% are, below 3 in ten billion):
// TestASampleHardlyEverMissesStaleLeases computes both exactly. In every other case all leases are
// listed, and the list decides.
//
// Below 1,000 nodes a list of all leases costs the API server no more than the sample does.
var LeaseSampling = Sampling{From: 1000, Size: 32, Stale: 2}

// Sample picks distinct numbers below n, each set with the same probability. below gives a random
// number below its argument. It is nil where a fleet of n nodes is not sampled.
func (s Sampling) Sample(n int, below func(n int) int) []int {
	if n < s.From || n <= s.Size || below == nil {
		return nil
	}
	// Floyd's algorithm: each round adds a number, and takes the largest where the one it drew is in.
	taken, out := make(map[int]bool, s.Size), make([]int, 0, s.Size)
	for last := n - s.Size; last < n; last++ {
		i := below(last + 1)
		if taken[i] {
			i = last
		}
		taken[i] = true
		out = append(out, i)
	}
	return out
}

// Count counts the leases of the sampled nodes. A node without one counts as stale, so that a doubt
// never makes the fleet look better. It returns nil where the sample proves nothing, because too
// many of its leases are stale: all leases must be listed then.
func (s Sampling) Count(nodes []string, leases map[string]Lease, fleet int) *Heartbeats {
	h := &Heartbeats{Fleet: fleet}
	for _, n := range nodes {
		if l, ok := leases[n]; ok {
			h.Count(l)
		} else {
			h.Nodes, h.Stale = h.Nodes+1, h.Stale+1
		}
	}
	if h.Nodes == 0 || h.Stale > s.Stale {
		return nil
	}
	return h
}
