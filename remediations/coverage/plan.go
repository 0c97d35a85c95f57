package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// As examples in a message, for each provider.
const maxServed = 2

// In messages, in place of a provider's name. notDone is for a step that is never carried out on
// the Node, like the replacement of a control-plane machine.
const (
	byDrydock  = "Drydock"
	notDone    = "not done"
	noProvider = "no provider"
)

// Plan returns one message for each step of the policies' plans, with its providers, the number of
// their Nodes and a few names. The last message is about Nodes that no policy takes.
func Plan(c *remediations.Config, nodes []*corev1.Node) (out []string) {
	var left []string
	by := map[string]map[string][]string{} // step -> provider -> names of Nodes
	for _, n := range nodes {
		steps := On(c, n, nil)
		if len(steps) == 0 {
			left = append(left, n.Name)
		}
		for _, s := range steps {
			if by[s.Step] == nil {
				by[s.Step] = map[string][]string{}
			}
			who := whoOf(c, s, n)
			by[s.Step][who] = append(by[s.Step][who], n.Name)
		}
	}
	for _, p := range c.Policies {
		for _, step := range p.Plan {
			if of := by[step.Name]; of != nil {
				out = append(out, step.Name+": "+carriedOut(of))
				delete(by, step.Name)
			}
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		out = append(out, "no policy takes "+counted(left, maxNamed))
	}
	return out
}

func whoOf(c *remediations.Config, s Served, n *corev1.Node) string {
	refuses := c.Remediation(s.Step).Refuses
	switch {
	case refuses != nil && refuses(n) != "":
		return notDone
	case s.Against != "":
		return noProvider
	}
	return cmp.Or(s.Provider, byDrydock)
}

// Providers with more Nodes come first. notDone and noProvider come last.
func carriedOut(of map[string][]string) string {
	rank := func(who string) int { return slices.Index([]string{notDone, noProvider}, who) }
	all := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), len(of[b])-len(of[a]), strings.Compare(a, b))
	})
	for i, who := range all {
		most := maxServed
		if who == noProvider {
			most = maxNamed
		}
		slices.Sort(of[who])
		all[i] = who + " on " + counted(of[who], most)
	}
	return strings.Join(all, ", ")
}

func counted(names []string, most int) string {
	nodes := "Nodes"
	if len(names) == 1 {
		nodes = "Node"
	}
	return fmt.Sprintf("%d %s (%s)", len(names), nodes, someOf(names, most))
}
