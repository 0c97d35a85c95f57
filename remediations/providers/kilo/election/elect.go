// Package election is Kilo's election of a location's leader, the node that relays the location's traffic.
//
// Kilo's agents each choose for themselves, out of the Nodes' annotations and labels alone, so the choice can be foreseen:
// Elect makes it as they do, and Move says which annotations have to change for it to fall on another node. Kubernetes'
// own readiness plays no part in it: a node counts while its agent writes kilo.squat.ai/last-seen.
//
// Our election is Kilo's (TestElectionIsKilos, TestOurElectionIsTheRuleInWords), and where a name among the endpoints
// leaves it open nothing is foreseen (TestANameIsForeseenOnlyWhereItMakesNoDifference).
//
// The provider and the agent on each node both import it, so it imports nothing of Drydock.
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

// Elect says which node of a location's, sorted by name, Kilo makes its leader: the first that is annotated and public,
// else the first annotated, else the first public, else the first. The rule is that of Kilo's topology, unchanged from
// 0.7.0 on. Empty: there is no node.
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

// Foresee is Elect where nothing is left open: a node whose endpoint is a name may be public or not, as each of Kilo's
// agents resolves it. ok is false where that decides who leads.
func Foresee(members []Node) (leader string, ok bool) {
	could := Possible(members)
	if len(could) > 1 {
		return "", false
	}
	return could[0], true
}

// Possible are all who might lead by what the names among the endpoints resolve to; Elect's first.
func Possible(members []Node) []string {
	out := []string{Elect(members)}
	for i, n := range members {
		if n.Host == "" {
			continue
		}
		// One at a time is enough: of several that are public, the first of the rank that leads leads, as it would alone.
		other := slices.Clone(members)
		other[i].resolvesPublic = true
		if leader := Elect(other); !slices.Contains(out, leader) {
			out = append(out, leader)
		}
	}
	return out
}

// Change is a set of annotations to write: Add the leader's key on one node first, then take it from the others, in order.
type Change struct {
	Add    string
	Remove []string
}

// Move says how leadership of the location falls on the node to, and off the node from: the key on to, and off every node
// whose key would outrank it, from being the last of them: as long as it has the key, no third node leads. ok is false
// where no annotation of ours does it.
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
		// One whose endpoint is a name may be public, and so outrank; and to, if its own is a name, may not be.
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
