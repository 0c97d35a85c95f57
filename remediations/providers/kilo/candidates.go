package kilo

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// Kilo only checks that the annotation kilo.squat.ai/leader exists. PutBack recognises by this
// value which annotations Drydock wrote.
const leaderValue = "drydock"

// A nil value means that the leader annotation is absent.
type edit struct {
	node     string
	from, to *string
}

// Between two edits of plan, either from or to leads. If no such edits exist, the error says why.
func plan(members []member, from, to string) ([]edit, error) {
	all := nodes(members)
	c, ok := election.Move(all, from, to)
	if !ok {
		return nil, fmt.Errorf("setting the annotation %s would not make the node the leader", election.LeaderKey)
	}
	var edits []edit
	if value := leaderValue; c.Add != "" {
		edits = append(edits, edit{node: c.Add, to: &value})
	}
	for _, name := range c.Remove {
		edits = append(edits, edit{node: name, from: find(members, name).key})
	}
	return edits, foresee(all, edits, from, to)
}

// After each edit, from or to must lead, and after the last edit, to must lead.
func foresee(members []election.Node, edits []edit, from, to string) error {
	after := slices.Clone(members)
	leaders := election.Possible(after)
	for _, e := range edits {
		i := slices.IndexFunc(after, func(n election.Node) bool { return n.Name == e.node })
		if i < 0 {
			return fmt.Errorf("node %s is not in the location any more", e.node)
		}
		after[i].Leader = e.to != nil
		leaders = election.Possible(after)
		for _, leader := range leaders {
			if leader != from && leader != to {
				return fmt.Errorf("changing %s of node %s would make %s the leader", election.LeaderKey, e.node, leader)
			}
		}
	}
	if len(leaders) > 1 || leaders[0] != to {
		return fmt.Errorf("%s could still lead", leaders[0])
	}
	return nil
}

// specials are the address ranges that Kilo treats as public although the internet does not route
// them (IANA's registries of special-purpose addresses, RFC 6890). For example, carriers and
// Tailscale use 100.64.0.0/10.
var specials = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("224.0.0.0/3"), netip.MustParsePrefix("::/8"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/9"),
	netip.MustParsePrefix("ff00::/8"),
}

// special returns "" if no range contains the endpoint, or if the endpoint is not an address.
func special(n election.Node) string {
	ip := n.Endpoint.Addr().Unmap()
	for _, p := range specials {
		if p.Contains(ip) {
			return p.String()
		}
	}
	return ""
}

// unreachable returns "" if other locations reach the endpoint. Kilo prefers a node with the leader
// annotation, even if its endpoint is private. The other locations reach the present leader, so an
// endpoint of the same kind is accepted.
func unreachable(leader, n election.Node) string {
	switch not := special(n); {
	case not != "" && not != special(leader):
		return "its endpoint is in " + not + ", which the internet does not route, so other locations may not reach it"
	case n.Public():
		return ""
	case leader.Public():
		return "its endpoint is not public but the leader's is, so other locations may not reach it"
	case (n.Host == "") != (leader.Host == ""):
		return "its endpoint differs from the leader's: one is a host name, and the other is an address"
	case (n.Keepalive == "") != (leader.Keepalive == ""):
		return "only one of this node and the leader has " + election.KeepaliveKey + "; without it, a NAT may block other locations"
	}
	return ""
}

// candidates returns the best node first. refused has the reason for each other node, by name.
// blind means that at least one node is refused only because there is no probe result about it.
func candidates(location string, members []member, leader string, w results) (moves []remediations.Move, refused map[string]string, blind bool) {
	type ranked struct {
		member
		ties int
	}
	var fit []ranked
	refused = map[string]string{}
	lead, accusers := find(members, leader), w.accusers(members, suspects(members, leader), true)
	for _, k := range members {
		if k.Name == leader {
			continue
		}
		why := cmp.Or(k.unfit, unreachable(lead.Node, k.Node))
		var ties int
		if why == "" {
			var known bool
			ties, known, why = w.candidate(k.Name, leader, members, accusers)
			blind = blind || !known
		}
		if why != "" {
			refused[k.Name] = why
			continue
		}
		fit = append(fit, ranked{k, ties})
	}
	slices.SortFunc(fit, func(a, b ranked) int {
		return cmp.Or(-compareBool(a.Public(), b.Public()), -cmp.Compare(a.ties, b.ties), strings.Compare(a.Name, b.Name))
	})
	for _, k := range fit {
		if len(moves) == maxCandidates {
			break
		}
		edits, err := plan(members, leader, k.Name)
		if err != nil {
			refused[k.Name] = err.Error()
			continue
		}
		moves = append(moves, moveOf(location, leader, k.Name, edits))
	}
	return moves, refused, blind
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func moveOf(location, from, to string, edits []edit) remediations.Move {
	m := remediations.Move{Location: location, From: from, To: to, Before: map[string]*string{}}
	for _, e := range edits {
		m.Before[e.node] = e.from
	}
	return m
}

func noCandidate(location string, refused map[string]string) string {
	var of []string
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		of = append(of, name+": "+refused[name])
	}
	return fmt.Sprintf("no other node of location %q can lead instead: %s", clip(location), named(of, "; "))
}
