package backtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// TestALargeFleetIsSampledAsLive: the leases of a few nodes are read instead of all, those and no
// other, and the same in each replay.
func TestALargeFleetIsSampledAsLive(t *testing.T) {
	t.Parallel()
	p := past{}
	for i := range signs.LeaseSampling.From {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%04d", i), corev1.ConditionTrue, midnight))
	}
	for i := range 50 { // these come and go together, in no order of their own
		p.at(at(0, 30)).Nodes = append(p.at(at(0, 30)).Nodes, nodeAt(fmt.Sprintf("m%04d", i), corev1.ConditionTrue, midnight))
		p.at(at(2, 0)).Gone = append(p.at(at(2, 0)).Gone, fmt.Sprintf("n%04d", i))
	}
	for h := range 4 {
		p.ill(fmt.Sprintf("n%04d", 500+h), at(h, 40), at(h, 59))
	}
	var asked [][][]string
	for range 2 {
		r := New(optionsOf(t, dayConfig), midnight)
		var all [][]string
		r.asked = func(names []string) { all = append(all, slices.Clone(names)) }
		for _, m := range p.moments() {
			require.NoError(t, r.Feed(t.Context(), m))
		}
		require.NoError(t, r.Until(t.Context(), at(5, 0)))
		require.NotEmpty(t, all)
		require.Len(t, r.story.repairs, 4)
		asked = append(asked, all)
		leases, err := r.Leases(t.Context(), all[len(all)-1])
		require.NoError(t, err)
		require.Len(t, leases, signs.LeaseSampling.Size)
	}
	require.Equal(t, asked[0], asked[1])
}
