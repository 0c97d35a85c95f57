package mesh

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// Role is what a node is in its location.
type Role string

// All roles there are.
const (
	Leader Role = "leader"
	Member Role = "member"
)

// Node is a node that Kilo counts and that has a location.
type Node struct {
	Name, Location string
	Role           Role
	// Agent is where its agent listens; the zero value: it is not known to have one.
	Agent netip.AddrPort
}

// Topology is who leads and who belongs to which location.
type Topology struct {
	// Self is the node of this agent.
	Self  string
	Nodes map[string]Node
	// Locations are the names of each location's nodes, sorted, its leader among them. No location is without a name.
	Locations map[string][]string
	// Unplaced are the names of nodes that Kilo counts and that have no location.
	Unplaced []string
	// Peers is how many nodes have an agent, this one apart.
	Peers int
}

// Agents are the addresses of each node's agent, at most one of a family.
type Agents map[string][]netip.AddrPort

// NewTopology tells locations and roles by Kilo's rule, as of now.
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

// between chooses the address by which two agents reach each other: of a family that both have, IPv4 first. Where the
// own address is not known yet, whatever the other has.
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

// others are the names of a location's nodes that have an agent, without its leader and without this node.
func (t Topology) others(location string) []string {
	var out []string
	for _, name := range t.Locations[location] {
		if n := t.Nodes[name]; n.Role == Member && name != t.Self && n.Agent.IsValid() {
			out = append(out, name)
		}
	}
	return out
}

// leader is the location's, if it has an agent and is not this node.
func (t Topology) leader(location string) (string, bool) {
	for _, name := range t.Locations[location] {
		if n := t.Nodes[name]; n.Role == Leader {
			return name, name != t.Self && n.Agent.IsValid()
		}
	}
	return "", false
}

// names of all locations but one, sorted.
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
