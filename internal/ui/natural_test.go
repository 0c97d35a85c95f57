package ui

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestNamesAreOrderedAsPeopleDo(t *testing.T) {
	t.Parallel()
	want := []string{
		"", "10.0.0.2", "10.0.0.10", "10.0.1.1", "node", "node-01", "node-1", "node-2", "node-2a", "node-2b", "node-010", "node-10", "node-11",
		"node-99999999999999999999998", "node-99999999999999999999999", "node-a", "nodes", "z-1.example", "z-1.example-2", "z-1.example-10",
	}
	got := slices.Clone(want)
	slices.Sort(got)
	require.NotEqual(t, want, got, "the names would stand so anyway")
	slices.SortFunc(got, natural)
	require.Equal(t, want, got)
	for _, a := range want {
		for _, b := range want {
			require.Equal(t, natural(a, b), -natural(b, a), "%q and %q", a, b)
			require.Equal(t, a == b, natural(a, b) == 0, "%q and %q", a, b)
		}
	}
}

func TestTheFleetIsOrderedAsPeopleDo(t *testing.T) {
	t.Parallel()
	f := newFleet()
	for _, name := range []string{"node-10", "node-2", "node-1"} {
		for _, zone := range []string{"zone-10", "zone-9"} {
			f.put(node(zone+"-"+name, labelled(corev1.LabelTopologyZone, zone), unready), now)
		}
	}
	page := f.page(now)
	var groups, tiles, concern []string
	for _, g := range page.Groups {
		groups = append(groups, g.Zone)
		for _, t := range g.Tiles {
			tiles = append(tiles, t.Node)
		}
	}
	for _, t := range page.Concern {
		concern = append(concern, t.Node)
	}
	require.Equal(t, []string{"zone-9", "zone-10"}, groups)
	want := []string{"zone-9-node-1", "zone-9-node-2", "zone-9-node-10", "zone-10-node-1", "zone-10-node-2", "zone-10-node-10"}
	require.Equal(t, want, tiles)
	require.Equal(t, want, concern)
}
