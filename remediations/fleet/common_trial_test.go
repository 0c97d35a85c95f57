package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

var lostGPUs = policyOf("p", signs.Sign{Kind: signs.MissingGPUs})

// begunTogether returns the onsets of one alert on each node, at the same time.
func begunTogether(nodes ...*corev1.Node) fleet.Onsets {
	onsets := fleet.Onsets{}
	for _, n := range nodes {
		onsets.Add(lostGPUs, n.Name, scene.Noon)
	}
	return onsets
}

func TestTheEarlierOfTwoAlertsOfANodeCounts(t *testing.T) {
	for _, minutes := range [][]int{{0, 9}, {9, 0}} {
		onsets := fleet.Onsets{}
		for _, m := range minutes {
			onsets.Add(lostGPUs, "n000", scene.Noon.Add(time.Duration(m)*time.Minute))
		}
		require.Equal(t, scene.Noon, onsets["p"]["n000"])
	}
}

// TestExcludedAndUnknownNodesDoNotShareACause: Drydock does not repair such nodes, so their alerts
// do not show that the repair of this node would be wrong.
func TestExcludedAndUnknownNodesDoNotShareACause(t *testing.T) {
	for name, change := range map[string]func([]*corev1.Node) []*corev1.Node{
		"the control":                   func(all []*corev1.Node) []*corev1.Node { return all },
		"the third is excluded":         func(all []*corev1.Node) []*corev1.Node { all[2].Labels[ExcludeLabel] = "true"; return all },
		"the third is not in the cache": func(all []*corev1.Node) []*corev1.Node { return all[:2] },
	} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.Herd(3, 0)
			onsets := begunTogether(nodes...)
			f := scene.FleetOf(withCommonCause(three), change(nodes), nil, scene.Noon)
			f.Begin(onsets)
			require.Equal(t, name == "the control", f.Common("p", "n000") != nil)
		})
	}
}

// TestCommonCausesAreNotSoughtWhereTheyAreSwitchedOff: with limits.commonCause.nodes 0, or with a
// policy without a witness, no fault is shared.
func TestCommonCausesAreNotSoughtWhereTheyAreSwitchedOff(t *testing.T) {
	nodes := scene.Herd(3, 0)
	f := scene.FleetOf(withCommonCause(CommonCause{}), nodes, nil, scene.Noon)
	f.Begin(begunTogether(nodes...))
	require.Nil(t, f.Common("p", "n000"))
	require.Nil(t, commonOf(&Policy{Name: "p"}, 0, 0, 0))
}

func TestTwoFaultsAfterEachOtherAreTwoCauses(t *testing.T) {
	got := commonOf(lostGPUs, 0, 0, 0, 20, 20, 20, 20)
	require.Equal(t, 3, got.Count)
	require.Equal(t, "n000, n001, n002", got.Names)
}

// TestACommonCauseOutlivesItsNodes: the other nodes still share the fault after a Node of the group
// was deleted.
func TestACommonCauseOutlivesItsNodes(t *testing.T) {
	nodes := scene.Herd(4, 0)
	r := fleet.NewRosterOf(withCommonCause(three), nodes)
	r.Begin(begunTogether(nodes...))
	r.Read(nodes[:3])
	require.Equal(t, 4, r.Fleet(&ledger.Ledger{}, false, scene.Noon).Common("p", "n000").Count)
}

// TestOneOfSeveralTrialsIsNamed: a failed repair is named before repairs in flight, and of several
// repairs the first by name. The order of a map must not matter, so each case runs many times.
func TestOneOfSeveralTrialsIsNamed(t *testing.T) {
	repair := func(n *corev1.Node, phase Phase) {
		scene.InPhase(scene.InFlight(n, "reboot"), phase)
		r := ReadJournal(n).Record
		r.Policy = "p"
		n.Annotations[NodeRepairKey] = r.Encode()
	}
	tried := func(change func(nodes []*corev1.Node)) (string, bool) {
		nodes := scene.Herd(6, 0)
		change(nodes)
		f := scene.FleetOf(withCommonCause(three), nodes, nil, scene.Noon)
		f.Begin(begunTogether(nodes...))
		got := f.Common("p", "n000")
		return got.Tried, got.Failed
	}
	for range 50 {
		node, failed := tried(func(nodes []*corev1.Node) {
			for _, n := range nodes[1:] {
				repair(n, PhaseVerifying)
			}
			repair(nodes[4], PhaseExhausted)
		})
		require.Equal(t, "n004", node)
		require.True(t, failed)
		node, failed = tried(func(nodes []*corev1.Node) {
			for _, n := range nodes[1:] {
				repair(n, PhaseVerifying)
			}
		})
		require.Equal(t, "n001", node)
		require.False(t, failed)
	}
	node, failed := tried(func(nodes []*corev1.Node) {
		park(nodes[1], func(r *Record) { r.Policy = "p" })
	})
	require.Empty(t, node, "a repair that is held tries nothing, although its node is drained")
	require.False(t, failed)
	node, _ = tried(func(nodes []*corev1.Node) {
		repair(nodes[1], PhasePending)
		r := ReadJournal(nodes[1]).Record
		r.Intent = nil
		nodes[1].Annotations[NodeRepairKey] = r.Encode()
	})
	require.Empty(t, node, "a repair that has not begun a step tries nothing")
}

// TestWhatThisPassHasBegunIsTheTrial: the repair's record is not in the cache yet. Three repairs do
// not count: a repair that observe mode would begin, a repair by another policy, and a repair of a
// node that does not share the fault.
func TestWhatThisPassHasBegunIsTheTrial(t *testing.T) {
	for name, c := range map[string]struct {
		begins  int
		wouldBe bool
		policy  string // of the record that the node has
		tried   string
	}{
		"begun":                       {begins: 2, tried: "n002"},
		"observed":                    {begins: 2, wouldBe: true},
		"a node without the fault":    {begins: 3},
		"the next step of its repair": {begins: 2, policy: "p", tried: "n002"},
		"a repair by another policy":  {begins: 2, policy: "q"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.Herd(4, 0)
			if c.policy != "" {
				scene.InPhase(scene.InFlight(nodes[2], "reboot"), PhasePending)
				r := ReadJournal(nodes[2]).Record
				r.Policy, r.Intent = c.policy, nil
				nodes[2].Annotations[NodeRepairKey] = r.Encode()
			}
			f := scene.FleetOf(withCommonCause(three), nodes, nil, scene.Noon)
			f.Begin(begunTogether(nodes[:3]...))
			require.Empty(t, f.Common("p", "n000").Tried)
			f.Occupy(scene.LimitsAlone(), nodes[c.begins], "", c.wouldBe)
			require.Equal(t, c.tried, f.Common("p", "n000").Tried)
		})
	}
}

func TestAMachineIsFoundByItsProviderID(t *testing.T) {
	nodes := scene.Herd(3, 0)
	nodes[0].Spec.ProviderID, nodes[1].Spec.ProviderID, nodes[2].Spec.ProviderID = "rack://0", "rack://1", ""
	f := scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon)
	for _, c := range []struct{ node, providerID, found string }{
		{"n000", "rack://0", "n000"},
		{"gone", "rack://1", "n001"}, // it has registered under another name
		{"n000", "rack://9", ""},     // another machine has the name
		{"n002", "rack://9", "n002"}, // it has no provider ID yet
		{"gone", "rack://9", ""},
		{"gone", "", ""},
		{"n000", "", ""},
	} {
		for range 20 { // in whatever order a map gives its entries
			got := f.OfMachine(c.node, c.providerID)
			if c.found == "" {
				require.Nil(t, got, c)
				continue
			}
			require.NotNil(t, got, c)
			require.Equal(t, c.found, got.Name, c)
		}
	}
}
