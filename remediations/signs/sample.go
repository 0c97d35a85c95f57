package signs

// Sampling configures the random sample of a fleet's leases, in fleets of at least From nodes. If
// at most Stale of Size leases are stale, the view of the nodes can be trusted.
type Sampling struct{ From, Size, Stale int }

// LeaseSampling is the sampling in use. It makes the first decision after a quiet time cost the
// same number of requests for every fleet of at least From nodes. A sample can only prove that few
// leases are stale. If it proves nothing, Drydock lists all leases, and the list decides. If at
// least half of all leases are stale, the probability of a wrong proof is below 2 in ten million.
// If 60% are stale, it is below 3 in ten billion. TestASampleHardlyEverMissesStaleLeases computes
// both exactly.
//
// Below 1,000 nodes a list of all leases costs the API server no more than the sample does.
var LeaseSampling = Sampling{From: 1000, Size: 32, Stale: 2}

// Sample returns Size distinct random numbers below n, or nil if a fleet of n nodes is not sampled.
// below returns a random number below its argument.
func (s Sampling) Sample(n int, below func(n int) int) []int {
	if n < s.From || n <= s.Size || below == nil {
		return nil
	}
	// This is Floyd's algorithm: each round adds the drawn number, or the largest possible number if
	// the drawn number was already taken.
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

// Count counts the leases of the sampled nodes. A node without a lease counts as stale, because
// missing data must not make the fleet look better. Nil means that too many are stale, so the
// sample proves nothing and all leases must be listed.
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
