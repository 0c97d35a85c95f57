package kilo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/providers/kilo/election"
	kind "drydock.dev/drydock/remediations/targets/location"
)

// Leads returns the location's leader according to the cache. It returns "" if no node leads, or if
// the leader is unknown.
func (m *Mesh) Leads(location string) (node string) {
	all, err := m.options.Nodes(context.Background())
	if err != nil {
		return ""
	}
	var candidates []*corev1.Node
	for _, n := range all {
		if election.Declared(n, m.options.TopologyLabel) == location || location == election.OwnLocation(n.Name) {
			candidates = append(candidates, n) // other nodes need not be parsed
		}
	}
	return m.leader(location, candidates)
}

// LeadsAll returns a function like Leads. It reads the cache only once, because alerts can name any
// number of locations, most of them nonexistent.
func (m *Mesh) LeadsAll() func(location string) (node string) {
	all, err := m.options.Nodes(context.Background())
	if err != nil {
		return func(string) string { return "" }
	}
	candidates := map[string][]*corev1.Node{}
	for _, n := range all {
		declared, own := election.Declared(n, m.options.TopologyLabel), election.OwnLocation(n.Name)
		if candidates[declared] = append(candidates[declared], n); own != declared {
			candidates[own] = append(candidates[own], n)
		}
	}
	return func(location string) string { return m.leader(location, candidates[location]) }
}

func (m *Mesh) leader(location string, candidates []*corev1.Node) string {
	read := make([]election.Node, 0, len(candidates))
	for _, n := range candidates {
		read = append(read, election.Read(n, m.options.TopologyLabel))
	}
	node, _ := election.Foresee(election.Locations(read, m.options.Now())[location])
	return node
}

// Look observes the location from all Nodes and from the agents' probe results in Prometheus. It
// changes nothing. What is unknown is in the Observation.
func (m *Mesh) Look(ctx context.Context, location string) kind.Observation {
	s := kind.Observation{At: m.options.Now()}
	leave, err := m.enter(ctx)
	if err != nil {
		s.Unknown = "waiting for another observation to end: " + err.Error()
		return s
	}
	defer leave()
	s.At = m.options.Now()
	v, err := m.read(ctx)
	if err != nil {
		s.Unknown = clip(err.Error())
		return s
	}
	members, others := v.of(location)
	// Held is reported even if other facts are unknown, because only a person can remove it.
	s.Held, s.Misconfigured = v.held(location, m.options.TopologyLabel)
	var certain bool
	if s.Leader, certain = election.Foresee(nodes(members)); s.Leader == "" {
		why := fmt.Sprintf("Kilo counts no node in location %q", clip(location))
		if !certain {
			why = fmt.Sprintf("the leader of location %q is unknown: an endpoint is a host name, which each of Kilo's agents resolves for itself; write the address into %s", clip(location), election.ForceEndpointKey)
		}
		return unknown(s, why)
	}
	s.Settled = settled(members, s.Leader)
	w, err := m.ask(ctx, v, location)
	if err != nil {
		s.ReachedWhy = "there are no probe results"
		return unknown(s, err.Error())
	}
	var known bool
	if s.Reached, known, s.ReachedWhy = w.reached(members, s.Leader); !known {
		return unknown(s, s.ReachedWhy)
	}
	if s.Held != "" {
		return s
	}
	fit, refused, unreported := candidates(location, members, s.Leader, w)
	var unread bool
	s.Refused = refused
	s.Candidates, unread = m.alive(ctx, fit, refused)
	for _, k := range others {
		s.Refused[k.Name] = k.absent()
	}
	// If the members are reached, no other node needs to lead. Then unknown facts about the other
	// nodes do not matter.
	if len(s.Candidates) == 0 && (unreported || unread) && !s.Reached {
		s.Unknown = noCandidate(location, s.Refused)
	}
	return s
}

// A reason that forbids any move stays the main one: it is certain, and a person can remove it.
func unknown(s kind.Observation, why string) kind.Observation {
	if s.Held == "" {
		s.Unknown = why
	} else {
		s.Unheard = why
	}
	return s
}

// Kilo's agents have adopted the leader if it alone has an address in the mesh.
func settled(members []member, leader string) bool {
	for _, k := range members {
		if k.WireGuard != (k.Name == leader) {
			return false
		}
	}
	return true
}
