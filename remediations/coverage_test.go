package remediations_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/scene"
)

// TestUncoveredNamesTheNodesBeforehand: those without a provider, those with two, and those that a provider names and nobody has. A
// policy that is off, a node that no policy takes and a step that is never done to the node are no matter.
func TestUncoveredNamesTheNodesBeforehand(t *testing.T) {
	node := func(name, id string) *corev1.Node {
		n := scene.Bare(name)
		n.Spec.ProviderID = id
		return n
	}
	replaces := serving("capi", "", "")
	replaces.Steps = []string{"replace"}
	named := serving("redfish", "", "")
	named.Names = map[string]bool{"m1": true, "m9": true}
	c := &Config{
		Providers: []Provider{serving("civo", "civo://", ""), named, replaces},
		Provided:  map[string]bool{"reboot": true, "replace": true},
		Policies:  []*Policy{{Name: "p", Kind: KindNode, Plan: []Step{{Name: "reboot"}, {Name: "drain"}, {Name: "replace"}}}},
	}
	nodes := []*corev1.Node{node("c1", "civo://1"), node("m1", "metal://1"), node("a1", "aws:///1"), node("a2", "aws:///2")}
	require.Equal(t, []string{
		`no provider serves Node a1 for the step reboot: its spec.providerID is "aws:///1", and civo serves Nodes whose spec.providerID begins with civo://, redfish serves the 2 Nodes it names; the same holds for 1 more: a2`,
		"redfish names 1 Nodes that the cluster does not have: m9",
	}, c.Uncovered(nodes))

	control := node("cp", "aws:///3") // which is never replaced
	control.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	c.Providers = append(c.Providers, serving("civo2", "civo://", ""))
	c.Providers[2].Scheme = "capi://"
	delete(c.Providers[1].Names, "m9")
	said := c.Uncovered(append(nodes[:1:1], control))
	require.Len(t, said, 4)
	require.Contains(t, said[0], "civo and civo2 each serve Node c1 for the step reboot, so neither is asked")
	require.Contains(t, said[1], "no provider serves Node c1 for the step replace")
	require.Contains(t, said[2], "no provider serves Node cp for the step reboot")
	require.Equal(t, "redfish names 1 Nodes that the cluster does not have: m1", said[3])

	c.Policies[0].Mode = ModeOff
	require.Equal(t, said[3:], c.Uncovered(append(nodes[:1:1], control)))
	c.Policies[0].Mode = ModeEnforce
	for i := range 30 {
		nodes = append(nodes, node(fmt.Sprintf("b%d", i), "aws:///b"))
	}
	require.Contains(t, c.Uncovered(nodes)[1], "the same holds for 31 more: a2, b0, b1, b2, b3, b4, b5, b6, b7, b8, …")
}
