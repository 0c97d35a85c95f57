package coverage_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestContestedNodesAreNamed: Contested reports Nodes that a policy repairs and that have the label
// of a cloud's own repair. It ignores Nodes without such a label, Nodes that no policy takes, and
// policies that are off or cannot act.
func TestContestedNodesAreNamed(t *testing.T) {
	node := func(name, key, value string) *corev1.Node {
		n := scene.Bare(name)
		n.Labels = map[string]string{key: value}
		return n
	}
	nodes := []*corev1.Node{
		node("aks-2", "kubernetes.azure.com/cluster", "MC_a"), node("aks-1", "kubernetes.azure.com/cluster", "MC_a"),
		node("auto", "eks.amazonaws.com/compute-type", "auto"), node("hybrid", "eks.amazonaws.com/compute-type", "hybrid"),
		node("gke", "cloud.google.com/gke-nodepool", "p1"), node("metal", "pool", "p1"),
		node("garden", "node.gardener.cloud/machine-name", "shoot--a--b-z1-5c9d7"),
	}
	c := &remediations.Config{
		Provided: map[string]bool{"reboot": true},
		Policies: []*remediations.Policy{{Name: "p", Kind: remediations.KindNode, Plan: []remediations.Step{{Name: "reboot"}}}},
	}
	const ends = "; use only one of the two (docs/operate/other-systems.md)"
	require.Equal(t, []string{
		"two systems may repair the same node: AKS node auto-repair (label kubernetes.azure.com/cluster) repairs 2 Nodes that Drydock's policies also repair: aks-1, aks-2" + ends,
		"two systems may repair the same node: EKS Auto Mode (label eks.amazonaws.com/compute-type=auto) repairs 1 Node that Drydock's policies also repair: auto" + ends,
		"two systems may repair the same node: Gardener's machine-controller-manager (label node.gardener.cloud/machine-name) repairs 1 Node that Drydock's policies also repair: garden" + ends,
		"two systems may repair the same node: GKE node auto-repair, unless it is off for the node pool (label cloud.google.com/gke-nodepool), repairs 1 Node that Drydock's policies also repair: gke" + ends,
	}, coverage.Contested(c, nodes, coverage.Managed()))
	require.Equal(t, []string{"two systems may repair the same node: X repairs 1 Node that Drydock's policies also repair: metal; use only one of the two: ask it (docs/operate/other-systems.md)"},
		coverage.Contested(c, nodes[5:6], []coverage.Repairer{{Object: "X", Repairs: func(*corev1.Node) bool { return true }, Advice: "ask it"}}))
	require.Empty(t, coverage.Contested(c, nodes[5:6], coverage.Managed()), "a node of no cloud")
	require.Empty(t, coverage.Contested(c, nodes, nil))

	c.Policies[0].Mode = remediations.ModeOff
	require.Empty(t, coverage.Contested(c, nodes, coverage.Managed()), "off")
	c.Policies[0].Mode, c.Provided = remediations.ModeObserve, nil
	require.Empty(t, coverage.Contested(c, nodes, coverage.Managed()), "no provider carries its step out")
	c.Provided = map[string]bool{"reboot": true}
	require.Len(t, coverage.Contested(c, nodes, coverage.Managed()), 4, "observing: said before it enforces")
}
