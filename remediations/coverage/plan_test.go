package coverage_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestPlanSaysWhoCarriesOutEachStepOnHowManyNodes: Plan returns one line for each step, whatever
// the number and order of the Nodes. Nodes without a provider are separate from Nodes that never
// get the step.
func TestPlanSaysWhoCarriesOutEachStepOnHowManyNodes(t *testing.T) {
	node := func(name, id string) *corev1.Node {
		n := scene.Bare(name)
		n.Spec.ProviderID = id
		return n
	}
	metal, replaces := scene.Serving("redfish", "", ""), scene.Serving("clusterAPI", "capi://", "")
	metal.Names, replaces.Steps = map[string]bool{"m1": true, "m2": true, "m3": true}, []string{"replace"}
	c := &remediations.Config{
		Providers: []remediations.Provider{scene.Serving("civo", "civo://", ""), metal, replaces},
		Provided:  map[string]bool{"reboot": true, "drain": true, "replace": true},
		Policies: []*remediations.Policy{
			{Name: "p", Kind: remediations.KindNode, Plan: []remediations.Step{{Name: "reboot"}, {Name: "drain"}}},
			{Name: "q", Kind: remediations.KindNode, Plan: []remediations.Step{{Name: "restart-kubelet"}, {Name: "reboot"}, {Name: "replace"}}},
		},
	}
	control := node("cp", "civo://cp")
	control.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	nodes := []*corev1.Node{control, node("m1", "capi://1"), node("m2", "capi://2"), node("m3", "x://3"), node("a1", "aws:///1")}
	for i := range 5000 {
		nodes = append(nodes, node(fmt.Sprintf("c%04d", i), "civo://c"))
	}
	say := []string{
		"reboot: civo on 5001 Nodes (c0000, c0001, …), redfish on 3 Nodes (m1, m2, …), no provider on 1 Node (a1)",
		"drain: Drydock on 5005 Nodes (a1, c0000, …)",
		"restart-kubelet: no provider on 5005 Nodes (a1, c0000, c0001, c0002, c0003, c0004, c0005, c0006, c0007, c0008, …)",
		"replace: clusterAPI on 2 Nodes (m1, m2), not done on 1 Node (cp), no provider on 5002 Nodes (a1, c0000, c0001, c0002, c0003, c0004, c0005, c0006, c0007, c0008, …)",
	}
	require.Equal(t, say, coverage.Plan(c, nodes))
	slices.Reverse(nodes)
	require.Equal(t, say, coverage.Plan(c, nodes))

	c.Policies[0].Mode, c.Policies[1].Mode = remediations.ModeOff, remediations.ModeOff
	require.Equal(t, []string{"no policy takes 2 Nodes (m1, m2)"}, coverage.Plan(c, []*corev1.Node{nodes[5003], nodes[5002]}))
	require.Empty(t, coverage.Plan(c, nil))
}
