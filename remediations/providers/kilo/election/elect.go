// Package election is Kilo's election of a location's leader, the node that relays the location's
// traffic.
//
// Each of Kilo's agents makes the choice for itself, from the Nodes' annotations and labels alone,
// so the choice can be foreseen. Elect follows the same rule, and Move returns the annotations that
// must change to make another node the leader. Kubernetes' own readiness plays no part: a node
// counts while its agent writes kilo.squat.ai/last-seen.
//
// This election is the same as Kilo's (TestElectionIsKilos, TestOurElectionIsTheRuleInWords). If a
// name among the endpoints leaves the result open, nothing is foreseen
// (TestANameIsForeseenOnlyWhereItMakesNoDifference).
//
// The provider and the agent on each node both import this package, so it imports nothing of
// Drydock.
package election

import (
	"slices"
	"strings"
	"time"
)

// Locations groups the nodes that Kilo counts by location, each sorted by name.
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

// Elect returns the node of a location that Kilo makes its leader. members are sorted by name: the
// first that is annotated and public, else the first annotated, else the first public, else the
// first. The rule is that of Kilo's topology, unchanged from 0.7.0 on. Empty: there is no node.
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

// Foresee is Elect for a certain result. A node whose endpoint is a name may be public or not,
// depending on how each of Kilo's agents resolves the name. ok is false if that decides the
// election.
func Foresee(members []Node) (leader string, ok bool) {
	could := Possible(members)
	if len(could) > 1 {
		return "", false
	}
	return could[0], true
}

// Possible returns all nodes that might lead, depending on how the names among the endpoints
// resolve; Elect's result comes first.
func Possible(members []Node) []string {
	out := []string{Elect(members)}
	for i, n := range members {
		if n.Host == "" {
			continue
		}
		// One at a time is enough: of several public ones, the first of the leading rank leads, as
		// it would alone.
		other := slices.Clone(members)
		other[i].resolvesPublic = true
		if leader := Elect(other); !slices.Contains(out, leader) {
			out = append(out, leader)
		}
	}
	return out
}

// Change is a set of annotations to write: first Add the leader's key on one node, then remove it
// from the others, in order.
type Change struct {
	Add    string
	Remove []string
}

// Move returns how the leadership of the location moves from the node from to the node to. It sets
// the key on to, and removes it from every node whose key would outrank to. The key of from is
// removed last: as long as from has the key, no third node leads. ok is false if no change of
// Drydock's annotations has this effect.
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
		// A node whose endpoint is a name may be public, and so outrank to. If the endpoint of to
		// is a name, to may not be public.
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
