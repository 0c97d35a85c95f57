package mesh_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/mesh"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// start makes a mesh for this test only, with an API server and Kilo.
func start(t *testing.T) (*mesh.Network, *mesh.Kilo, context.Context) {
	t.Helper()
	mesh.Need(t)
	n, err := mesh.New()
	require.NoError(t, err)
	t.Cleanup(n.Close)
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, NodeSpecs: n.Specs()})
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	t.Cleanup(cancel)
	k, err := n.StartKilo(ctx, l, 0)
	require.NoError(t, err)
	t.Cleanup(k.Stop)
	return n, k, ctx
}

// flows asserts that new flows pass from one pod to another.
func flows(t *testing.T, n *mesh.Network, from, to string, why ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	_, err := n.Flows(ctx, from, to)
	require.NoError(t, err, why...)
}

// mute asserts that new flows do not pass on exactly that many paths. It repeats the check, because
// on a busy machine a working path may be late.
func mute(t *testing.T, n *mesh.Network, ways int, why string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(n.Mute(t.Context())) == ways }, lab.Patience, 100*time.Millisecond, why)
}

func TestALeaderWhoseNewFlowsVanishDarkensItsMembersUntilAnotherLeads(t *testing.T) {
	n, k, ctx := start(t)
	require.Equal(t, "west-1", k.Leader("west"))
	flows(t, n, "east-2", "west-3", "a packet crosses locations, through two relays")
	old, err := n.Connect(ctx, "east-2", "west-3")
	require.NoError(t, err)
	defer old.Close()
	require.NoError(t, mesh.Exchange(old))

	require.NoError(t, n.DropNewVXLAN("west-1"))
	begun := time.Now()
	for _, from := range []string{"east-1", "east-2", "east-3", "cloud-1", "cloud-2"} {
		flows(t, n, from, "west-1", "the leader's own pod is not behind its VXLAN")
	}
	mute(t, n, 2*2*5+2*2, "every pod elsewhere and the members', the leader's pod and the members', both ways")
	require.NoError(t, mesh.Exchange(old), "what flowed before goes on")
	flows(t, n, "west-2", "west-3", "the members among themselves are well")
	for _, to := range []string{"west-1", "west-2", "west-3"} {
		require.NoError(t, n.Ping("west-1", to), "ping sees nothing of it")
		require.NoError(t, n.Ping("east-1", to))
	}

	require.NoError(t, k.Lead(ctx, "west-2"))
	first, err := n.Flows(ctx, "cloud-2", "west-3")
	require.NoError(t, err)
	t.Logf("moved by hand, packets pass %s after the fault", first.Sub(begun))
	flows(t, n, "east-3", "west-2")
	require.Error(t, n.Send(ctx, "east-3", "west-1"), "the old leader's pod is behind the new one, and its answers still vanish")
	require.NoError(t, n.Heal("west-1"))
	mute(t, n, 0, "it is healed")
}

func TestAFaultAtAMemberIsItsOwn(t *testing.T) {
	n, _, _ := start(t)
	require.NoError(t, n.DropNewVXLAN("east-2"))
	mute(t, n, 2*7, "its own pod and everybody else's, both ways")
	require.NoError(t, n.HealAll())
	mute(t, n, 0, "it is healed")
}

func TestAFaultThatHitsLargePacketsAloneLetsSmallOnesThrough(t *testing.T) {
	n, _, ctx := start(t)
	require.NoError(t, n.DropLarge("west-1"))
	require.Error(t, n.Send(ctx, "east-1", "west-2"))
	_, err := n.Connect(ctx, "east-1", "west-2")
	require.NoError(t, err, "what opens a connection is small")
}

func TestALeaderAloneHasAnAddressInTheMesh(t *testing.T) {
	mesh.Need(t)
	n, err := mesh.New()
	require.NoError(t, err)
	t.Cleanup(n.Close)
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, NodeSpecs: n.Specs()})
	k, err := n.StartKilo(t.Context(), l, 0)
	require.NoError(t, err)
	t.Cleanup(k.Stop)
	addressed := func() (names []string) {
		nodes, err := l.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, node := range nodes.Items {
			if node.Annotations[election.WireGuardIPKey] != "" {
				names = append(names, node.Name)
			}
		}
		return names
	}
	is := func(want ...string) {
		require.Eventually(t, func() bool { return slices.Equal(addressed(), want) }, lab.Patience, 50*time.Millisecond)
	}
	is("cloud-1", "east-1", "west-1")
	require.NoError(t, k.Lead(t.Context(), "east-3"))
	is("cloud-1", "east-3", "west-1")
}

func TestALeaderThatRelaysNothingIsWellWithinItsLocation(t *testing.T) {
	n, _, ctx := start(t)
	require.NoError(t, n.DropRelayed("west-1"))
	require.Error(t, n.Send(ctx, "east-1", "west-2"))
	for _, to := range []string{"west-2", "west-3", "east-2"} {
		flows(t, n, "west-1", to)
	}
	require.NoError(t, n.Heal("west-1"))
	require.NoError(t, n.CutTunnel("west-1", "east-1"))
	require.Error(t, n.Send(ctx, "east-1", "west-1"))
	flows(t, n, "cloud-2", "west-2")
	flows(t, n, "cloud-2", "east-2")
}

// The path for the pods' packets does not depend on what kind of packets they are.
func TestPodsMayHaveIPv6(t *testing.T) {
	mesh.Need(t)
	n, err := mesh.NewIPv6()
	require.NoError(t, err)
	t.Cleanup(n.Close)
	require.True(t, n.Node("west-2").PodIP().Is6())
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, NodeSpecs: n.Specs()})
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	t.Cleanup(cancel)
	k, err := n.StartKilo(ctx, l, 0)
	require.NoError(t, err)
	t.Cleanup(k.Stop)
	require.NoError(t, n.DropNewVXLAN("west-1"))
	require.Error(t, n.Send(ctx, "east-2", "west-3"))
	flows(t, n, "east-2", "west-1")
	require.NoError(t, k.Lead(ctx, "west-2"))
	flows(t, n, "east-2", "west-3")
	require.NoError(t, n.HealAll())
	require.NoError(t, k.Lead(ctx, "west-1"))
	mute(t, n, 0, "the tunnel goes back as well")
}
