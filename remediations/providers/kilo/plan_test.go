package kilo

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations/providers/kilo/election"
	"drydock.dev/drydock/remediations/providers/kilo/election/electiontest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead: after every single edit Kilo's rule gives
// the old leader or the successor, however the names among the endpoints resolve. The undoing ends
// where the move began.
func TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		var members []member
		for _, n := range electiontest.Location(t, 7, rapid.Bool().Draw(t, "names")) {
			k := member{Node: n}
			if value := rapid.SampledFrom([]string{"", "true", "false"}).Draw(t, "value"); n.Leader {
				k.key = &value
			}
			members = append(members, k)
		}
		from, ok := election.Foresee(nodes(members))
		if !ok {
			return
		}
		to := rapid.SampledFrom(members).Draw(t, "successor").Name
		edits, err := plan(members, from, to)
		if err != nil {
			require.True(t, to == from || slices.ContainsFunc(members, func(k member) bool { return k.Host != "" }), "%v", err)
			return
		}
		moved++
		move := moveOf("east", from, to, edits)
		after := step(t, members, edits, from, to)
		require.Equal(t, to, election.Elect(nodes(after)))
		again := step(t, after, back(move), from, to)
		require.Equal(t, members, again, "all is as it was")
		require.Equal(t, members, step(t, again, back(move), from, to), "and stays so")

		// The move broke off somewhere: the edits that were not made need no undoing, and the
		// others are undone.
		broken := step(t, members, edits[:rapid.IntRange(0, len(edits)).Draw(t, "broken off after")], from, to)
		require.Equal(t, members, step(t, broken, back(move), from, to))
	})
	require.Positive(t, moved)
}

// step makes the edits, each if the key has the edit's old value, and checks the plain rule after
// each.
func step(t *rapid.T, members []member, edits []edit, from, to string) []member {
	now := slices.Clone(members)
	for _, e := range edits {
		k := find(now, e.node)
		require.NotNil(t, k)
		if !same(k.key, e.from) {
			continue
		}
		k.key, k.Leader = e.to, e.to != nil
		electiontest.Resolve(nodes(now), func(as []election.Node) {
			require.Contains(t, []string{from, to}, electiontest.Rule(as), "after %s", e)
		})
	}
	return now
}
