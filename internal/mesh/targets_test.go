package mesh

import (
	"fmt"
	"hash/maphash"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawn is a mesh of any shape, with agents on most of its nodes, seen by one of them.
func drawn(t *rapid.T) Topology {
	locations := rapid.IntRange(1, 40).Draw(t, "locations")
	top := Topology{Nodes: map[string]Node{}, Locations: map[string][]string{}}
	some := grid("", 1, 1).Nodes["l000-000"].Agent
	var all []string
	for l := range locations {
		location := fmt.Sprintf("l%02d", l)
		for m := range rapid.IntRange(1, 9).Draw(t, "members") {
			n := Node{Name: fmt.Sprintf("%s-%d", location, m), Location: location, Role: Member}
			if m == 0 {
				n.Role = Leader
			}
			if rapid.IntRange(0, 9).Draw(t, "agent") > 0 {
				n.Agent = some
			}
			top.Nodes[n.Name] = n
			top.Locations[location] = append(top.Locations[location], n.Name)
			all = append(all, n.Name)
		}
	}
	top.Self = rapid.SampledFrom(all).Draw(t, "self")
	return top
}

// TestEveryMemberIsAskedInTurn: in any mesh, from any round, within as many rounds as the largest
// location has members, for each turn that a location has.
func TestEveryMemberIsAskedInTurn(t *testing.T) {
	seed := maphash.MakeSeed()
	rapid.Check(t, func(t *rapid.T) {
		top := drawn(t)
		round := rapid.Uint64Range(0, 1<<40).Draw(t, "round")
		rounds, turns := 1, (len(top.Locations)+locationsARound-1)/locationsARound
		for _, members := range top.Locations {
			rounds = max(rounds, len(members))
		}
		asked := map[string]int{}
		for i := range rounds * turns {
			for _, name := range Targets(top, round+uint64(i), seed) {
				asked[name]++
			}
		}
		for name, n := range top.Nodes {
			if name == top.Self || !n.Agent.IsValid() {
				require.Zero(t, asked[name])
				continue
			}
			require.Positive(t, asked[name], "%s, seen from %s", name, top.Self)
			if n.Role == Leader && n.Location == top.Nodes[top.Self].Location {
				require.Equal(t, rounds*turns, asked[name], "the own leader is asked every round")
			}
		}
	})
}

func TestARoundIsBoundedByLocations(t *testing.T) {
	seed := maphash.MakeSeed()
	rapid.Check(t, func(t *rapid.T) {
		top := drawn(t)
		targets := Targets(top, rapid.Uint64().Draw(t, "round"), seed)
		require.LessOrEqual(t, len(targets), min(mostTargets, 2*(len(top.Locations)-1)+1+siblingsARound))
		slices.Sort(targets)
		require.Equal(t, slices.Compact(slices.Clone(targets)), targets, "nobody twice")
	})
	require.Len(t, Targets(grid("l000-001", 3, 300), 7, seed), 2*2+1+siblingsARound)
	require.Len(t, Targets(grid("l000-000", 3, 300), 7, seed), 2*2+siblingsARound, "a leader does not ask itself")
	require.LessOrEqual(t, len(Targets(grid("l000-001", 200, 2), 7, seed)), mostTargets)
}

// TestAgentsDoNotAllAskTheSameMember: each agent starts at another member.
func TestAgentsDoNotAllAskTheSameMember(t *testing.T) {
	asked := map[string]int{}
	for range 300 {
		for _, name := range Targets(grid("l000-000", 2, 31), 5, maphash.MakeSeed()) {
			if name > "l001-000" {
				asked[name]++
			}
		}
	}
	for name, n := range asked {
		require.Less(t, n, 60, "%s of 30 members is asked by %d of 300 agents at once", name, n)
	}
}

func TestANodeWithoutLocationProbesNoNode(t *testing.T) {
	seed := maphash.MakeSeed()
	top := grid("stranger", 3, 3)
	require.Empty(t, Targets(top, 1, seed))
	require.Empty(t, Targets(Topology{Self: "a"}, 1, seed))
}
