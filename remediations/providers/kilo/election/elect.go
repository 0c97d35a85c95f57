// Package election computes which node of a location Kilo makes its leader. The leader relays the
// location's traffic to other locations.
//
// Each of Kilo's agents computes the leader for itself, from the Nodes' annotations and labels
// alone. So Drydock can compute the same result beforehand. Elect follows Kilo's rule. Move returns
// which annotations must change to make another node the leader. The Ready condition does not
// matter: Kilo counts a node as long as its agent writes kilo.squat.ai/last-seen.
//
// Two tests compare this election with Kilo's (TestElectionIsKilos,
// TestOurElectionIsTheRuleInWords). If the result depends on a host name among the endpoints,
// Foresee returns no result (TestANameIsForeseenOnlyWhereItMakesNoDifference).
//
// The provider and the agent on each node import this package. So the only package of Drydock that
// it imports is internal/text.
package election

import (
	"slices"
	"strings"
	"time"
)

// Locations returns the nodes that Kilo counts, by location. Each list is sorted by name.
func Locations(nodes []Node, now time.Time) map[string][]Node {
	out := map[string][]Node{}
	for _, n := range nodes {
		if n.NotReady(now) == "" {
			out[n.Location] = append(out[n.Location], n)
		}
	}
	for _, l := range out {
		sortByName(l)
	}
	return out
}

func sortByName(members []Node) {
	slices.SortFunc(members, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
}

// Elect returns the node that Kilo makes the leader of a location, or "" without members. members
// must be sorted by name: Kilo chooses the first public node with the leader annotation, or else
// the first with the annotation, the first public node, or the first node. This rule has not
// changed since Kilo 0.7.0.
func Elect(members []Node) string {
	var annotated, public string
	for _, n := range members {
		switch {
		case n.Leader && n.Public():
			return n.Name
		case n.Leader && annotated == "":
			annotated = n.Name
		case n.Public() && public == "":
			public = n.Name
		}
	}
	for _, name := range []string{annotated, public} {
		if name != "" {
			return name
		}
	}
	if len(members) > 0 {
		return members[0].Name
	}
	return ""
}

// Foresee returns Elect's result. ok is false if the leader depends on a host name as endpoint,
// which each of Kilo's agents resolves for itself.
func Foresee(members []Node) (leader string, ok bool) {
	could := Possible(members)
	if len(could) > 1 {
		return "", false
	}
	return could[0], true
}

// Possible returns all nodes that might lead, depending on how the host names among the endpoints
// resolve. Elect's result is first.
func Possible(members []Node) []string {
	out := []string{Elect(members)}
	for i, n := range members {
		if n.Host == "" {
			continue
		}
		// It is enough to assume one public host name at a time. With several public host names,
		// the leader is the first node of the best rank. That node also leads if only its own host
		// name is public.
		other := slices.Clone(members)
		other[i].resolvesPublic = true
		if leader := Elect(other); !slices.Contains(out, leader) {
			out = append(out, leader)
		}
	}
	return out
}

// Change makes a node the leader: the leader annotation is first set on Add, unless that is empty,
// and then removed from Remove, in this order.
type Change struct {
	Add    string
	Remove []string
}

// Move returns the writes that move a location's leadership from one node to another. The old
// leader loses the annotation last: until then, no third node can lead. ok is false if leader
// annotations alone cannot make the new one lead.
func Move(members []Node, from, to string) (c Change, ok bool) {
	target := slices.IndexFunc(members, func(n Node) bool { return n.Name == to })
	if target < 0 || from == to {
		return Change{}, false
	}
	after := slices.Clone(members)
	if !after[target].Leader {
		c.Add, after[target].Leader = to, true
	}
	keyed := false
	for i, n := range after {
		switch {
		case !n.Leader || i == target:
		case n.Name == from:
			keyed, after[i].Leader = true, false
		// It is unknown whether a host name as endpoint is public. The worst case is assumed: the host
		// name of a node that could outrank the new leader is public, and the host name of the new leader
		// is not.
		case (n.Public() || n.Host != "") && (i < target || !after[target].Public()), !after[target].Public() && i < target:
			c.Remove = append(c.Remove, n.Name)
			after[i].Leader = false
		}
	}
	if keyed {
		c.Remove = append(c.Remove, from)
	}
	return c, Elect(after) == to
}
