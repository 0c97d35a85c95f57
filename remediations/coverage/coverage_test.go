package coverage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestUncoveredNamesTheNodesBeforehand: Uncovered reports Nodes without a provider, Nodes with two,
// and Nodes in a provider's list that do not exist. It ignores policies that are off, nodes that no
// policy takes, and steps that Drydock never does to the node.
func TestUncoveredNamesTheNodesBeforehand(t *testing.T) {
	node := func(name, id string) *corev1.Node {
		n := scene.Bare(name)
		n.Spec.ProviderID = id
		return n
	}
	replaces := scene.Serving("capi", "", "")
	replaces.Steps = []string{"replace"}
	named := scene.Serving("redfish", "", "")
	named.Names = map[string]bool{"m1": true, "m9": true}
	c := &remediations.Config{
		Providers: []remediations.Provider{scene.Serving("civo", "civo://", ""), named, replaces},
		Provided:  map[string]bool{"reboot": true, "replace": true},
		Policies:  []*remediations.Policy{{Name: "p", Kind: remediations.KindNode, Plan: []remediations.Step{{Name: "reboot"}, {Name: "drain"}, {Name: "replace"}}}},
	}
	nodes := []*corev1.Node{node("c1", "civo://1"), node("m1", "metal://1"), node("a1", "aws:///1"), node("a2", "aws:///2")}
	require.Equal(t, []string{
		`no provider serves Node a1 for the step reboot: its spec.providerID is "aws:///1", and civo serves Nodes whose spec.providerID begins with civo://, redfish serves the 2 Nodes it names; the same is true for 1 other Node: a2`,
		"provider redfish lists 1 Node that the cluster does not have: m9",
	}, coverage.Uncovered(c, nodes))

	control := node("cp", "aws:///3") // which is never replaced
	control.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	c.Providers = append(c.Providers, scene.Serving("civo2", "civo://", ""))
	c.Providers[2].Scheme = "capi://"
	delete(c.Providers[1].Names, "m9")
	said := coverage.Uncovered(c, append(nodes[:1:1], control))
	require.Len(t, said, 4)
	require.Contains(t, said[0], "civo and civo2 each serve Node c1 for the step reboot, so Drydock calls none of them")
	require.Contains(t, said[1], "no provider serves Node c1 for the step replace")
	require.Contains(t, said[2], "no provider serves Node cp for the step reboot")
	require.Equal(t, "provider redfish lists 1 Node that the cluster does not have: m1", said[3])

	c.Policies[0].Mode = remediations.ModeOff
	require.Equal(t, said[3:], coverage.Uncovered(c, append(nodes[:1:1], control)))
	c.Policies[0].Mode = remediations.ModeEnforce
	for i := range 30 {
		nodes = append(nodes, node(fmt.Sprintf("b%d", i), "aws:///b"))
	}
	require.Contains(t, coverage.Uncovered(c, nodes)[1], "the same is true for 31 other Nodes: a2, b0, b1, b2, b3, b4, b5, b6, b7, b8, …")
}

// TestServedSaysWhoCarriesOutEachStep: On returns the provider of each step of a plan, or why there
// is none. For all plans of a node it returns each step once.
func TestServedSaysWhoCarriesOutEachStep(t *testing.T) {
	plan := func(name string, steps ...string) *remediations.Policy {
		p := &remediations.Policy{Name: name, Kind: remediations.KindNode}
		for _, step := range steps {
			p.Plan = append(p.Plan, remediations.Step{Name: step})
		}
		return p
	}
	c := &remediations.Config{
		Providers: []remediations.Provider{scene.Serving("civo", "civo://", "")}, Provided: map[string]bool{"reboot": true, "drain": true, "replace": true},
		Policies: []*remediations.Policy{plan("p", "restart-kubelet", "reboot", "drain"), plan("q", "reboot", "replace"), plan("off", "restart-unit")},
	}
	c.Providers[0].Steps = []string{"reboot", "replace"}
	c.Policies[2].Mode = remediations.ModeOff
	n := scene.Bare("n1")
	n.Spec.ProviderID = "civo://1"
	kubelet := coverage.Served{Step: "restart-kubelet", Against: "no configured provider carries out the step restart-kubelet"}
	reboot, drain := coverage.Served{Step: "reboot", Provider: "civo"}, coverage.Served{Step: "drain"}
	require.Equal(t, []coverage.Served{kubelet, reboot, drain, {Step: "replace", Provider: "civo"}}, coverage.On(c, n, nil))
	require.Equal(t, []coverage.Served{kubelet, reboot, drain}, coverage.On(c, n, c.Policies[0]))

	n.Spec.ProviderID, n.Labels = "aws:///1", map[string]string{"node-role.kubernetes.io/control-plane": ""}
	said := coverage.On(c, n, c.Policies[1])
	require.Contains(t, said[0].Against, "no provider serves Node n1 for the step reboot")
	require.Contains(t, said[1].Against, "a control-plane node is never replaced", "whoever serves it")
}

// TestLacksCountsTheNodesOfEachStep: Lacks counts the Nodes of each step, and describes the first
// one by name, whatever the order of the list.
func TestLacksCountsTheNodesOfEachStep(t *testing.T) {
	c := &remediations.Config{
		Providers: []remediations.Provider{scene.Serving("civo", "civo://", "")}, Provided: map[string]bool{"reboot": true},
		Policies: []*remediations.Policy{{Name: "p", Kind: remediations.KindNode, Plan: []remediations.Step{{Name: "reboot"}, {Name: "drain"}}}},
	}
	var nodes []*corev1.Node
	for _, name := range []string{"c", "b", "a"} {
		n := scene.Bare(name)
		n.Spec.ProviderID = "aws:///" + strings.Repeat("x", 190)
		nodes = append(nodes, n)
	}
	nodes[2].Spec.ProviderID = "civo://1"
	lacks := coverage.Lacks(c, nodes)
	require.Len(t, lacks, 1)
	require.Equal(t, 2, lacks["reboot"].Nodes)
	require.Contains(t, lacks["reboot"].First, "no provider serves Node b for the step reboot")
	require.LessOrEqual(t, len(lacks["reboot"].First), 400)
	slices.Reverse(nodes)
	require.Equal(t, lacks, coverage.Lacks(c, nodes))
	nodes[2].Spec.ProviderID, nodes[1].Spec.ProviderID = "civo://2", "civo://3"
	require.Empty(t, coverage.Lacks(c, nodes))
}
