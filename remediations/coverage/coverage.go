package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

const maxNamed = 10

// Served is a step of a plan with its provider on a Node.
type Served struct {
	Step string `json:"step"`
	// If Provider and Against are both empty, Drydock itself carries out the step.
	Provider string `json:"provider,omitempty"`
	// Why the step cannot be carried out on the Node. Empty if it can.
	Against string `json:"against,omitempty"`
}

// On returns the steps of the policy's plan, or with nil of all policies that could repair the
// Node, each once and with its provider on the Node.
func On(c *remediations.Config, n *corev1.Node, p *remediations.Policy) (out []Served) {
	of := []*remediations.Policy{p}
	if p == nil {
		of = taking(c, n)
	}
	for _, p := range of {
		for _, step := range p.Plan {
			if slices.ContainsFunc(out, func(s Served) bool { return s.Step == step.Name }) {
				continue
			}
			served := Served{Step: step.Name}
			switch refuses := c.Remediation(step.Name).Refuses; {
			case refuses != nil && refuses(n) != "":
				served.Against = refuses(n)
			case !c.Provides(step):
				served.Against = fmt.Sprintf("no configured provider carries out the step %s", step.Name)
			default:
				served.Provider, served.Against = c.ProviderOf(step.Name, n)
				served.Provider = cmp.Or(step.Provider, served.Provider)
			}
			out = append(out, served)
		}
	}
	return out
}

// taking returns the policies that could repair the Node itself.
func taking(c *remediations.Config, n *corev1.Node) (out []*remediations.Policy) {
	for _, p := range c.Policies {
		if p.Kind == remediations.KindNode && p.Mode != remediations.ModeOff && p.Takes(n) {
			out = append(out, p)
		}
	}
	return out
}

// unserved returns the steps that need a provider on the Node, but do not have exactly one.
func unserved(c *remediations.Config, n *corev1.Node) (steps []string) {
	var asked []string // each step is checked once, because most policies have the same steps
	for _, p := range taking(c, n) {
		for _, step := range p.Plan {
			if slices.Contains(asked, step.Name) {
				continue
			}
			asked = append(asked, step.Name)
			if c.NeedsProvider(step, n) && len(c.Claimants(step.Name, n)) != 1 && isCarried(c, step.Name) {
				steps = append(steps, step.Name)
			}
		}
	}
	return steps
}

func isCarried(c *remediations.Config, step string) bool {
	return slices.ContainsFunc(c.Providers, func(p remediations.Provider) bool { return slices.Contains(p.Steps, step) })
}

// Lack is a step that some Nodes do not have exactly one provider for.
type Lack struct {
	// The number of these Nodes.
	Nodes int `json:"nodes"`
	// The message about the first of these Nodes by name.
	First string `json:"first"`
}

// Lacks returns, by name, the steps that do not have exactly one provider on every Node that needs
// them.
func Lacks(c *remediations.Config, nodes []*corev1.Node) map[string]Lack {
	out, first := map[string]Lack{}, map[string]*corev1.Node{}
	for _, n := range nodes {
		for _, step := range unserved(c, n) {
			out[step] = Lack{Nodes: out[step].Nodes + 1}
			if was := first[step]; was == nil || n.Name < was.Name {
				first[step] = n
			}
		}
	}
	for step, n := range first {
		_, against := c.ProviderOf(step, n)
		out[step] = Lack{Nodes: out[step].Nodes, First: text.Line(against, maxLack)}
	}
	return out
}

// maxLack is in bytes. It bounds Lack.First, which the ledger stores.
const maxLack = 400

// Uncovered returns messages about steps that do not have exactly one provider on some of the
// Nodes, and about providers whose configuration names Nodes that do not exist.
func Uncovered(c *remediations.Config, nodes []*corev1.Node) (out []string) {
	type fault struct{ step, claimants string }
	said, more := map[fault]string{}, map[fault][]string{}
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Name] = true
		for _, step := range unserved(c, n) {
			of := fault{step, strings.Join(c.Claimants(step, n), " ")}
			if said[of] == "" {
				_, said[of] = c.ProviderOf(step, n)
				continue
			}
			more[of] = append(more[of], n.Name)
		}
	}
	for of, against := range said {
		if others := more[of]; len(others) > 0 {
			against += fmt.Sprintf("; the same is true for %s: %s", text.Count(len(others), "other Node"), someOf(others, maxNamed))
		}
		out = append(out, against)
	}
	for _, p := range c.Providers {
		gone := slices.DeleteFunc(slices.Sorted(maps.Keys(p.Names)), func(name string) bool { return there[name] })
		if len(gone) > 0 {
			out = append(out, fmt.Sprintf("provider %s lists %s that the cluster does not have: %s", p.Name, text.Count(len(gone), "Node"), someOf(gone, maxNamed)))
		}
	}
	slices.Sort(out)
	return out
}

func someOf(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}
