package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/text"
)

// Provider is an outside system that carries out some steps on some Nodes.
type Provider struct {
	// Name is the provider's key in the configuration.
	Name string
	// The remediations that the provider carries out.
	Steps []string
	// The prefix of the spec.providerID of the provider's Nodes, for example civo://. Empty means
	// any.
	Scheme string
	// Selects the Nodes by labels; their providerID then does not matter. Nil means that Names or
	// Scheme selects them.
	NodeSelector k8slabels.Selector
	// The provider serves no other Node. Nil means that there is no such list.
	Names map[string]bool
	// The Kubernetes users that change a Node during a step of the provider. Nil if it changes no
	// Node.
	Users []string
	// How many repairs may use the provider at the same time, besides the fleet's limits. Zero
	// means any number.
	Concurrent int
	// The provider's system drains a Node itself before it replaces the machine, so the plan skips
	// its own drain.
	Drains bool
	// The provider's system replaces a deleted machine only if the cluster needs another one.
	PromisesNone bool
}

const maxProviderName = 63

// Serves describes in messages which Nodes the provider serves.
func (p *Provider) Serves() string {
	if slices.ContainsFunc(p.Steps, func(step string) bool { return shipped[step].Target != KindNode }) {
		return "its own targets" // those targets are not Nodes
	}
	switch {
	case p.Names != nil && p.NodeSelector != nil && !p.NodeSelector.Empty():
		return fmt.Sprintf("those of the %s it names that have the labels %s", text.Count(len(p.Names), "Node"), p.NodeSelector)
	case p.Names != nil:
		return "the " + text.Count(len(p.Names), "Node") + " it names"
	case p.NodeSelector != nil && !p.NodeSelector.Empty():
		return fmt.Sprintf("Nodes with the labels %s", p.NodeSelector)
	case p.NodeSelector == nil && p.Scheme != "":
		return fmt.Sprintf("Nodes whose spec.providerID begins with %s", p.Scheme)
	}
	return "any Node"
}

// How strongly a provider claims a Node, the weakest first. A provider with a scheme also claims a
// Node without a providerID: it then finds the machine in another way, or refuses the step.
const (
	claimsNot = iota
	claimsAny
	claimsScheme
	claimsSelected
)

func (p *Provider) claims(n *corev1.Node) int {
	switch id := n.Spec.ProviderID; {
	case p.Names != nil && !p.Names[n.Name]:
		return claimsNot
	case p.Names != nil && p.NodeSelector == nil:
		return claimsSelected
	case p.NodeSelector != nil && p.NodeSelector.Matches(k8slabels.Set(n.Labels)):
		return claimsSelected
	case p.NodeSelector != nil:
		return claimsNot
	case p.Scheme == "" || id == "":
		return claimsAny
	case strings.HasPrefix(id, p.Scheme):
		return claimsScheme
	}
	return claimsNot
}

// Claimants returns the names of the step's providers that claim the Node most strongly: exactly
// one in a correct configuration.
func (c *Config) Claimants(step string, n *corev1.Node) (best []string) {
	strongest := claimsAny
	for i := range c.Providers {
		p := &c.Providers[i]
		if !slices.Contains(p.Steps, step) {
			continue
		}
		switch claim := p.claims(n); {
		case claim > strongest:
			strongest, best = claim, []string{p.Name}
		case claim == strongest:
			best = append(best, p.Name)
		}
	}
	return best
}

// ProviderOf returns the provider that carries out the step on the Node. If none or several serve
// the Node, name is empty and against is the reason. Both are empty if the step needs no provider.
func (c *Config) ProviderOf(step string, n *corev1.Node) (name, against string) {
	best := c.Claimants(step, n)
	if len(best) == 1 {
		return best[0], ""
	}
	var has []string
	for _, p := range c.Providers {
		if slices.Contains(p.Steps, step) {
			has = append(has, p.Name+" serves "+p.Serves())
		}
	}
	switch {
	case len(has) == 0:
		return "", ""
	case len(best) == 0:
		return "", fmt.Sprintf("no provider serves Node %s for the step %s: its spec.providerID is %.200q, and %s", n.Name, step, n.Spec.ProviderID, strings.Join(has, ", "))
	}
	return "", fmt.Sprintf("%s each serve Node %s for the step %s, so Drydock calls none of them; give one of them a nodeSelector. The Node's spec.providerID is %.200q, and %s", strings.Join(best, " and "), n.Name, step, n.Spec.ProviderID, strings.Join(has, ", "))
}

// ProviderAhead returns the first provider in the rest of the plan, or "". A repair counts against
// this provider's limit from the start. Otherwise the node could be drained and then wait for the
// provider.
func (c *Config) ProviderAhead(p *Policy, index int, n *corev1.Node) string {
	if p == nil || !slices.ContainsFunc(c.Providers, func(p Provider) bool { return p.Concurrent > 0 }) {
		return ""
	}
	for _, s := range p.Plan[min(index, len(p.Plan)):] {
		if name, _ := c.ProviderOf(s.Name, n); name != "" {
			return name
		}
	}
	return ""
}

// ConcurrentOf returns how many repairs may use the provider at the same time. Zero means any
// number.
func (c *Config) ConcurrentOf(provider string) int {
	i := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.Name == provider })
	if i < 0 {
		return 0
	}
	return c.Providers[i].Concurrent
}

// Several reports whether more than one provider is configured for the step, so that the record
// must name the one that was called.
func (c *Config) Several(step string) bool {
	n := 0
	for _, p := range c.Providers {
		if slices.Contains(p.Steps, step) {
			n++
		}
	}
	return n > 1
}

// ProviderOfIntent returns the provider that was called for the intent's step, also when the Node
// no longer exists.
func (c *Config) ProviderOfIntent(step string, i *Intent) string {
	if i.Provider != "" {
		return i.Provider
	}
	if !c.Several(step) {
		for _, p := range c.Providers {
			if slices.Contains(p.Steps, step) {
				return p.Name
			}
		}
	}
	name, _ := c.ProviderOf(step, &corev1.Node{Spec: corev1.NodeSpec{ProviderID: i.ProviderID}})
	return name
}

// PromisesNone reports whether the provider of the intent's step may leave a deleted machine
// without a replacement.
func (c *Config) PromisesNone(step string, i *Intent) bool {
	name := c.ProviderOfIntent(step, i)
	return slices.ContainsFunc(c.Providers, func(p Provider) bool { return p.Name == name && p.PromisesNone })
}

// NeedsProvider reports whether the step can be issued on the Node only if exactly one provider
// serves the Node.
func (c *Config) NeedsProvider(s Step, n *corev1.Node) bool {
	of := c.Remediation(s.Name)
	return of.Once && c.Provides(s) && (of.Refuses == nil || of.Refuses(n) == "")
}

// AsksFirst reports whether other systems are asked before the step's intent is written: the
// provider, or the other repair systems of a shared node.
func (c *Config) AsksFirst(step string) bool {
	of := c.Remediation(step)
	return of.LooksFirst || c.Reserves && of.Disruptive
}

// WorkersOf returns the Kubernetes users of the providers that replace this Node's machine, if the
// repair has issued that. The webhook allows their changes of the Node, because they are part of
// the step.
func (c *Config) WorkersOf(r *Record, n *corev1.Node) (users []string) {
	if !c.Remediation(r.Step.Name).Replaces || r.Intent.UID != string(n.UID) {
		return nil
	}
	for _, p := range c.Providers {
		if slices.Contains(p.Steps, r.Step.Name) {
			users = append(users, p.Users...)
		}
	}
	return users
}

// The waits before a provider is asked again: for an obstacle that ends by itself, and for one that
// a person must remove.
const (
	AskPassing = 30 * time.Second
	AskMended  = 5 * time.Minute
)
