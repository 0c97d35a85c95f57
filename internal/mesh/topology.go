package mesh

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// Role is a node's role in its location.
type Role string

const (
	Leader Role = "leader"
	Member Role = "member"
)

// Node is a node that takes part in Kilo's mesh now and has a location.
type Node struct {
	Name, Location string
	Role           Role
	// Agent is zero if the address of the node's agent is unknown.
	Agent netip.AddrPort
}

// Topology has the locations, their nodes and their leaders.
type Topology struct {
	// Self is the name of this agent's node.
	Self  string
	Nodes map[string]Node
	// Locations has the sorted names of each location's nodes, including the leader.
	Locations map[string][]string
	// Unplaced are nodes that take part in Kilo's mesh now and have no location.
	Unplaced []string
	// Peers is how many other nodes have an agent.
	Peers int
}

// Agents has the addresses of each node's agent, at most one IPv4 and one IPv6 address, by the
// node's name.
type Agents map[string][]netip.AddrPort

// NewTopology computes the topology at the time now, and finds the leaders by Kilo's rule. self is
// the name of this agent's node.
func NewTopology(self string, nodes []election.Node, agents Agents, now time.Time) Topology {
	t := Topology{Self: self, Nodes: map[string]Node{}, Locations: map[string][]string{}}
	for location, members := range election.Locations(nodes, now) {
		if location == "" {
			for _, n := range members {
				t.Unplaced = append(t.Unplaced, n.Name)
			}
			continue
		}
		leader := election.Elect(members)
		for _, n := range members {
			role := Member
			if n.Name == leader {
				role = Leader
			}
			t.Nodes[n.Name] = Node{Name: n.Name, Location: location, Role: role, Agent: agents.between(self, n.Name)}
			t.Locations[location] = append(t.Locations[location], n.Name)
		}
	}
	for name := range agents {
		if name != self {
			t.Peers++
		}
	}
	return t
}

// between uses only an address family that both agents have, and prefers IPv4. If the addresses of
// self are unknown, it uses any address of other. The result is zero if no address can be used.
func (a Agents) between(self, other string) netip.AddrPort {
	addresses := slices.Clone(a[other])
	slices.SortStableFunc(addresses, func(x, y netip.AddrPort) int { return x.Addr().BitLen() - y.Addr().BitLen() })
	own := a[self]
	for _, to := range addresses {
		if len(own) == 0 || slices.ContainsFunc(own, func(o netip.AddrPort) bool { return o.Addr().Is4() == to.Addr().Is4() }) {
			return to
		}
	}
	return netip.AddrPort{}
}

// others leaves out this node, the leader, and nodes without an agent.
func (t Topology) others(location string) []string {
	var out []string
	for _, name := range t.Locations[location] {
		if n := t.Nodes[name]; n.Role == Member && name != t.Self && n.Agent.IsValid() {
			out = append(out, name)
		}
	}
	return out
}

// leader returns false if there is no leader, if it has no agent, or if it is this node.
func (t Topology) leader(location string) (string, bool) {
	for _, name := range t.Locations[location] {
		if n := t.Nodes[name]; n.Role == Leader {
			return name, name != t.Self && n.Agent.IsValid()
		}
	}
	return "", false
}

func (t Topology) locationsBut(own string) []string {
	var out []string
	for l := range t.Locations {
		if l != own {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
