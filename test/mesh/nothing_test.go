package mesh

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// A fault of a member does not move the leadership of its location. A leader's own fault in another
// location, at the same time, does.
func TestAFaultAtAMemberMovesNothing(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	require.NoError(t, y.network.DropVXLAN("west-2"))
	y.await("the member is silent", func() bool {
		return y.query(`count(drydock_mesh_probe_success{path="cross",src_role="leader",dst_node="west-2"} == 0)`) > 0
	})
	require.NoError(t, y.network.DropVXLAN("east-1"))
	fault := time.Now()
	y.moved("east", "east-2")
	y.flows("cloud-2", "east-3", fault)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("east-1").Outcome)
	require.Error(t, y.network.Send(t.Context(), "east-2", "west-2"), "it was broken all the time")
	y.unmoved("west", "west-1")
	y.unmoved("cloud", "cloud-1")
}

// All agents restart, and their pods are gone for some time. That shows nothing about any leader.
func TestARollOutOfAllAgentsMovesNothing(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	y.agents.Kill()
	for _, n := range y.network.Nodes() {
		require.NoError(t, y.network.Unplug(n.Name))
	}
	y.await("nothing is scraped", func() bool { return y.query(`sum(up{job="drydock-agent"})`) == 0 })
	for _, n := range y.network.Nodes() {
		require.NoError(t, y.network.Plug(n.Name))
	}
	require.NoError(t, y.agents.Start(t.Context()))
	y.await("everything is scraped", func() bool { return y.query(`sum(up{job="drydock-agent"})`) == 8 })
	require.NoError(t, y.network.DropVXLAN("east-1"))
	y.moved("east", "east-2")
	y.ended("east-1")
	y.unmoved("west", "west-1")
	y.unmoved("cloud", "cloud-1")
}

// Half of the agents are gone. The reports of the others are enough to find the faulty leader, and
// never lead to a wrong one.
func TestHalfTheAgentsGoneMovesNothing(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	gone := []string{"west-2", "west-3", "east-2", "cloud-2"}
	t.Cleanup(func() { require.NoError(t, y.agents.Restore(context.WithoutCancel(t.Context()), gone...)) })
	require.NoError(t, y.agents.Remove(t.Context(), gone...))
	y.await("they are not scraped", func() bool { return y.query(`sum(up{job="drydock-agent"})`) == 4 })
	y.patience()
	y.allUnmoved()
}

// A fault between two locations is not a fault of either leader.
func TestACutBetweenTwoLocationsMovesNothing(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	require.NoError(t, y.network.CutTunnel("west-1", "cloud-1"))
	y.await("probes say so", func() bool {
		return y.query(`count(drydock_mesh_probe_success{src_location="west",dst_location="cloud"} == 0)`) > 0
	})
	require.NoError(t, y.network.DropVXLAN("east-1"))
	y.moved("east", "east-2")
	y.ended("east-1")
	y.unmoved("west", "west-1")
	y.unmoved("cloud", "cloud-1")
}

// Agents that hang are not gone: their ports are open, their addresses are known, and nothing
// answers. That shows nothing about the path to them, whether they are behind a leader or are all
// agents of a location.
func TestAgentsThatHangMoveNothing(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	t.Cleanup(func() { require.NoError(t, y.agents.Wake()) })
	for scraped, hang := range map[float64][]string{6: {"west-2", "west-3"}, 5: {"west-1", "west-2", "west-3"}} {
		require.NoError(t, y.agents.Wake())
		require.NoError(t, y.agents.Hang(hang...))
		y.await("they are not scraped", func() bool { return y.query(`sum(up{job="drydock-agent"})`) == scraped })
		y.patience()
		y.allUnmoved()
	}

	require.NoError(t, y.agents.Wake())
	y.allWell()
	require.NoError(t, y.network.DropVXLAN("west-1"))
	y.moved("west", "west-2")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("west-1").Outcome)
}

// Members without power are as silent as members behind a leader that relays nothing. An alert that
// is faster than the shipped one fires for them. The leases of their kubelets show the difference.
func TestMembersWithoutPowerMoveNothing(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	dark := []string{"west-2", "west-3"}
	on := y.powerOff(dark...)
	y.await("leaders elsewhere do not reach them", func() bool {
		return y.query(`count(drydock_mesh_probe_success{path="cross",src_role="leader",dst_location="west",dst_role="member"} == 0)`) > 0
	})
	y.await("they are not Ready", func() bool {
		return !slices.ContainsFunc(dark, func(name string) bool {
			c := remediations.ReadyCondition(y.node(name))
			return c != nil && c.Status == corev1.ConditionTrue
		})
	})
	y.patience()
	if held := y.held("west", "west-1"); held != nil {
		t.Logf("held: %s", held.Hold.Message)
	}
	y.flows("east-3", "west-1", y.began) // the path to the leader works, so the fault is not the leader's
	leaderOn := y.powerOff("west-1")
	y.patience()
	y.held("west", "west-1")

	on()
	leaderOn()
	y.allWell()
	y.await("the alerts end", func() bool { return len(y.firing()) == 0 && y.held("west", "west-1") == nil })
	y.allUnmoved()
	require.NoError(t, y.network.DropVXLAN("west-1"))
	y.moved("west", "west-2")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("west-1").Outcome)
}
