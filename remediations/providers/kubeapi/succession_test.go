package kubeapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestWhatASetShowsOfAReplacement: only a younger machine with another provider ID proves it, in a
// set that is whole and without the old one.
func TestWhatASetShowsOfAReplacement(t *testing.T) {
	then := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	was := Succession{Set: "MachineSet a", ProviderID: "lab://1", Newest: then, Seen: 2, Wanted: 2}
	before, after := Member{"lab://2", then, true}, Member{"lab://3", then.Add(time.Second), true}
	lingers := was
	lingers.Old = "the old one still exists"
	reused, down := after, after
	reused.ProviderID, down.Up = "lab://1", false
	for name, c := range map[string]struct {
		of      Succession
		members []Member
		want    remediations.Replacement
	}{
		"replaced":            {was, []Member{before, after}, remediations.Replacement{MachineGone: true, Successors: []string{"lab://3"}}},
		"the old one lingers": {lingers, []Member{before, after}, remediations.Replacement{Successors: []string{"lab://3"}, Missing: "the old one still exists"}},
		"a list with holes": {was, []Member{after}, remediations.Replacement{
			Successors: []string{"lab://3"}, Missing: "MachineSet a counts 2 Machines but 1 are listed, so the list may also lack the old one; MachineSet a has 1 Machines with a Node, and should have 2",
		}},
		"none is new": {was, []Member{before, before}, remediations.Replacement{MachineGone: true, Missing: "MachineSet a has no new Machine with a Node"}},
		"the new one is not up": {was, []Member{before, down}, remediations.Replacement{
			MachineGone: true, Missing: "MachineSet a has 1 Machines with a Node, and should have 2; MachineSet a has no new Machine with a Node",
		}},
		"the new one has the old ID": {was, []Member{before, reused}, remediations.Replacement{MachineGone: true, Missing: "MachineSet a has no new Machine with a Node"}},
	} {
		require.Equal(t, c.want, c.of.Replacement(c.members), name)
	}
}
