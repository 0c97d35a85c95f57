package signs_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// missed returns the exact probability that a sample wrongly proves that few leases are stale, in a
// fleet with that many stale leases. It is the hypergeometric distribution, because no node is
// drawn twice.
func missed(s signs.Sampling, fleet, stale int) *big.Rat {
	ways, binomial := new(big.Int), func(n, k int) *big.Int { return new(big.Int).Binomial(int64(n), int64(k)) }
	for seen := 0; seen <= s.Stale; seen++ {
		if fresh := s.Size - seen; fresh <= fleet-stale && seen <= stale {
			ways.Add(ways, new(big.Int).Mul(binomial(stale, seen), binomial(fleet-stale, fresh)))
		}
	}
	return new(big.Rat).SetFrac(ways, binomial(fleet, s.Size))
}

var (
	missedHalf = big.NewRat(2, 10_000_000)     // at least half of the leases are stale: Agrees
	missedMost = big.NewRat(3, 10_000_000_000) // 60% or more: Blind
)

// TestASampleHardlyEverMissesStaleLeases computes the probabilities in the comment of
// LeaseSampling.
func TestASampleHardlyEverMissesStaleLeases(t *testing.T) {
	for _, fleet := range []int{signs.LeaseSampling.From, 1001, 1999, 5000, 15_000, 100_000, 1_000_000} {
		t.Run(fmt.Sprint(fleet), func(t *testing.T) {
			half, most := missed(signs.LeaseSampling, fleet, (fleet+1)/2), missed(signs.LeaseSampling, fleet, (fleet*60+99)/100)
			require.Negative(t, half.Cmp(missedHalf), "half are stale: %s", half.FloatString(15))
			require.Negative(t, most.Cmp(missedMost), "60%% are stale: %s", most.FloatString(15))
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		fleet := rapid.IntRange(signs.LeaseSampling.From, 200_000).Draw(t, "fleet")
		stale := rapid.IntRange((fleet+1)/2, fleet).Draw(t, "stale")
		require.Negative(t, missed(signs.LeaseSampling, fleet, stale).Cmp(missedHalf))
		if blind := (&signs.Heartbeats{Nodes: fleet, Stale: stale}).Blind(); blind != "" {
			require.Negative(t, missed(signs.LeaseSampling, fleet, stale).Cmp(missedMost))
		} else {
			require.Less(t, stale*100, fleet*60, "the bound above begins where the fleet counts as blind")
		}
	})
	looser := signs.LeaseSampling
	looser.Stale++
	require.Positive(t, missed(looser, 5000, 2500).Cmp(missedHalf), "one stale lease more would be too many")
}

// TestEachSampleIsAsLikelyAsAnyOther tries every possible sequence of random numbers.
func TestEachSampleIsAsLikelyAsAnyOther(t *testing.T) {
	drawn := map[[6]bool]int{}
	said := make([]int, 3)
	for said[0] = range 4 {
		for said[1] = range 5 {
			for said[2] = range 6 {
				round, which := 0, [6]bool{}
				sample := signs.Sampling{From: 1, Size: 3}.Sample(6, func(n int) int {
					require.Equal(t, 4+round, n)
					round++
					return said[round-1]
				})
				for _, i := range sample {
					require.False(t, which[i], "a node is drawn twice")
					which[i] = true
				}
				drawn[which]++
			}
		}
	}
	require.Len(t, drawn, 20, "all sets of three out of six")
	for which, n := range drawn {
		require.Equal(t, 6, n, "%v", which)
	}
}

func TestASmallFleetIsNotSampled(t *testing.T) {
	first := func(int) int { return 0 }
	require.Empty(t, signs.LeaseSampling.Sample(signs.LeaseSampling.From-1, first))
	require.Empty(t, signs.Sampling{From: 0, Size: 9}.Sample(9, first), "that would be all of them")
	require.Empty(t, signs.LeaseSampling.Sample(5000, nil), "nothing is random without randomness")
	require.Len(t, signs.LeaseSampling.Sample(signs.LeaseSampling.From, first), signs.LeaseSampling.Size)
}

func TestASampleOnlySaysThatFewLeasesAreStale(t *testing.T) {
	s := signs.Sampling{Size: 4, Stale: 1}
	nodes := []string{"a", "b", "c", "d"}
	leases := map[string]signs.Lease{"other": {ReadAt: noon}}
	for _, n := range nodes {
		leases[n] = signs.Lease{ReadAt: noon, RenewedAt: noon}
	}
	require.Equal(t, &signs.Heartbeats{Nodes: 4, Fleet: 900}, s.Count(nodes, leases, 900))
	delete(leases, "a")
	few := s.Count(nodes, leases, 900)
	require.Equal(t, &signs.Heartbeats{Nodes: 4, Stale: 1, Fleet: 900}, few, "a node without a lease counts as stale")
	require.Empty(t, few.Blind())
	leases["b"] = signs.Lease{ReadAt: noon, RenewedAt: noon.Add(-1)}
	require.Nil(t, s.Count(nodes, leases, 900), "this many prove nothing")
	require.Nil(t, s.Count(nil, leases, 900))
}

// TestWhatASampleMayShowIsGoodForEveryVerdict: guards do not check whether the count is a sample,
// so they must decide the same for every count that a sample may give.
func TestWhatASampleMayShowIsGoodForEveryVerdict(t *testing.T) {
	for stale := range signs.LeaseSampling.Stale + 1 {
		h := &signs.Heartbeats{ReadAt: noon, Nodes: signs.LeaseSampling.Size, Stale: stale, Fleet: 5000}
		require.Empty(t, h.Blind())
		require.True(t, remediations.ClocksAgree(h, noon))
	}
}
