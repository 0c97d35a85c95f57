package mesh

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

func TestTheTopologyIsKilos(t *testing.T) {
	agents := Agents{}
	for _, name := range []string{"a1", "a2", "b1", "b2", "alone", "nowhere", "gone"} {
		agents[name] = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:9099")}
	}
	top := NewTopology("a1", read(
		kiloNode("a1", "a", noon), kiloNode("a2", "a", noon, leads),
		kiloNode("b1", "b", noon), kiloNode("b2", "x", noon, annotated(election.LocationKey, "b")),
		kiloNode("alone", "b", noon, without(election.InternalIPKey)),
		kiloNode("nowhere", "", noon), kiloNode("late", "a", noon.Add(-2*time.Minute)),
		kiloNode("malformed", "a", noon, annotated(election.EndpointKey, "somewhere")), kiloNode("wild", "a", noon, annotated(election.LastSeenKey, "today")),
		kiloNode("agentless", "b", noon),
	), agents, noon)

	roles := map[string]Role{}
	for name, n := range top.Nodes {
		roles[n.Location+"/"+name] = n.Role
	}
	require.Equal(t, map[string]Role{
		"a/a1": Member, "a/a2": Leader, "b/agentless": Leader, "b/b1": Member, "b/b2": Member, "node:alone/alone": Leader,
	}, roles, "what Kilo does not count is in no location, whatever is wrong with it")
	require.Equal(t, []string{"nowhere"}, top.Unplaced)
	require.False(t, top.Nodes["agentless"].Agent.IsValid())
	require.Equal(t, 6, top.Peers)
}

func TestAgentsMeetInAFamilyThatBothHave(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("10.0.0.1:9099"), netip.MustParseAddrPort("[fd00::1]:9099")
	own4, own6 := netip.MustParseAddrPort("10.0.0.2:9099"), netip.MustParseAddrPort("[fd00::2]:9099")
	for name, c := range map[string]struct {
		own, other []netip.AddrPort
		want       netip.AddrPort
	}{
		"both have both":           {[]netip.AddrPort{own6, own4}, []netip.AddrPort{v6, v4}, v4},
		"the other has IPv6 alone": {[]netip.AddrPort{own4, own6}, []netip.AddrPort{v6}, v6},
		"we have IPv6 alone":       {[]netip.AddrPort{own6}, []netip.AddrPort{v4, v6}, v6},
		"none in common":           {[]netip.AddrPort{own4}, []netip.AddrPort{v6}, netip.AddrPort{}},
		"ours is not known yet":    {nil, []netip.AddrPort{v6, v4}, v4},
		"the other has no agent":   {[]netip.AddrPort{own4}, nil, netip.AddrPort{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Agents{"self": c.own, "other": c.other}.between("self", "other"))
		})
	}
}
