package kilo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/providers/kilo/election"
	kind "drydock.dev/drydock/remediations/targets/location"
)

// Leads says which node leads the location by what the cache knows; empty: none, or it cannot be said.
func (m *Mesh) Leads(location string) (node string) {
	all, err := m.options.Nodes(context.Background())
	if err != nil {
		return ""
	}
	var candidates []*corev1.Node
	for _, n := range all {
		if election.Declared(n, m.options.TopologyLabel) == location || location == election.OwnLocation(n.Name) {
			candidates = append(candidates, n) // most of a large mesh is not, and need not be read
		}
	}
	return m.leader(location, candidates)
}

// LeadsAll is Leads for many locations, by what the cache knows now. It goes over the fleet once: alerts can name any
// number of locations, and most of those do not exist.
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

// leader is the one of the location among the candidates.
func (m *Mesh) leader(location string, candidates []*corev1.Node) string {
	read := make([]election.Node, 0, len(candidates))
	for _, n := range candidates {
		read = append(read, election.Read(n, m.options.TopologyLabel))
	}
	node, _ := election.Foresee(election.Locations(read, m.options.Now())[location])
	return node
}

// Look looks at the location live: at all Nodes, and at what Prometheus has of the agents' words. It does not fail: what
// it could not find out is in the answer. It changes nothing.
func (m *Mesh) Look(ctx context.Context, location string) kind.Observation {
	s := kind.Observation{At: m.options.Now()}
	leave, err := m.enter(ctx)
	if err != nil {
		s.Unknown = "waiting for another look to end: " + err.Error()
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
	// A hold is for a person to end, whatever else is or is not known.
	s.Held, s.Misconfigured = v.held(location, m.options.TopologyLabel)
	var certain bool
	if s.Leader, certain = election.Foresee(nodes(members)); s.Leader == "" {
		why := fmt.Sprintf("location %q has no node that Kilo counts", clip(location))
		if !certain {
			why = fmt.Sprintf("who leads location %q cannot be foreseen: an endpoint is a name, which each of Kilo's agents resolves for itself; write its address into %s", clip(location), election.ForceEndpointKey)
		}
		return unknown(s, why)
	}
	s.Settled = settled(members, s.Leader)
	w, err := m.ask(ctx, v, location)
	if err != nil {
		s.ReachedWhy = "nothing is known of probes"
		return unknown(s, err.Error())
	}
	var known bool
	if s.Reached, known, s.ReachedWhy = w.reached(members, s.Leader); !known {
		return unknown(s, s.ReachedWhy)
	}
	if s.Held != "" {
		return s
	}
	fit, refused, unheard := candidates(location, members, s.Leader, w)
	var unread bool
	s.Refused = refused
	s.Candidates, unread = m.alive(ctx, fit, refused)
	for _, k := range others {
		s.Refused[k.Name] = k.absent()
	}
	// Where the members are reached nobody else needs to lead, and what is not known of others is no matter.
	if len(s.Candidates) == 0 && (unheard || unread) && !s.Reached {
		s.Unknown = nobody(location, s.Refused)
	}
	return s
}

// unknown keeps the hold where there is one: it is certain, and a person can end it.
func unknown(s kind.Observation, why string) kind.Observation {
	if s.Held == "" {
		s.Unknown = why
	} else {
		s.Unheard = why
	}
	return s
}

// settled says that Kilo's agents have followed: the leader has an address in the mesh, and no other node of the location.
func settled(members []member, leader string) bool {
	for _, k := range members {
		if k.WireGuard != (k.Name == leader) {
			return false
		}
	}
	return true
}
