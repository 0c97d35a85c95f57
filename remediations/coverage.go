package remediations

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxNamed is how many further Nodes one sentence about all of them names.
const maxNamed = 10

// Uncovered says beforehand on which of these Nodes no single provider would carry out a step that a policy has for them, and which
// Nodes a provider names that are not among them. Each sentence is about one step and those who claim it.
func (c *Config) Uncovered(nodes []*corev1.Node) (out []string) {
	type fault struct{ step, claimants string }
	said, more := map[fault]string{}, map[fault][]string{}
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Name] = true
		missing := map[fault]string{}
		for _, p := range c.Policies {
			if p.Kind != KindNode || p.Mode == ModeOff || !p.Takes(n) {
				continue
			}
			for _, step := range p.Plan {
				of := c.Remediation(step.Name)
				if !of.Once || !c.Provides(step) || (of.Refuses != nil && of.Refuses(n) != "") {
					continue
				}
				if _, against := c.ProviderOf(step.Name, n); against != "" {
					missing[fault{step.Name, strings.Join(c.Claimants(step.Name, n), " ")}] = against
				}
			}
		}
		for of, against := range missing {
			if said[of] == "" {
				said[of] = against
				continue
			}
			more[of] = append(more[of], n.Name)
		}
	}
	for of, against := range said {
		if others := more[of]; len(others) > 0 {
			against += fmt.Sprintf("; the same holds for %d more: %s", len(others), someOf(others))
		}
		out = append(out, against)
	}
	for _, p := range c.Providers {
		gone := slices.DeleteFunc(slices.Sorted(maps.Keys(p.Names)), func(name string) bool { return there[name] })
		if len(gone) > 0 {
			out = append(out, fmt.Sprintf("%s names %d Nodes that the cluster does not have: %s", p.Name, len(gone), someOf(gone)))
		}
	}
	slices.Sort(out)
	return out
}

// someOf are the first of the names, in their order.
func someOf(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxNamed], ", ") + ", …"
}
