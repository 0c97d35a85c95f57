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
	// Steps are the names of the remediations that the provider carries out.
	Steps []string
	// Scheme is the prefix of the spec.providerID of the provider's Nodes, for example civo://. If
	// it is empty, the providerID does not matter.
	Scheme string
	// NodeSelector selects the provider's Nodes by their labels. If it is set, their
	// spec.providerID does not matter. If it is nil, Names or Scheme selects the Nodes.
	NodeSelector k8slabels.Selector
	// Names has the names of the provider's Nodes, if the configuration lists them all. The provider
	// serves no other Node. If it is nil, there is no such list.
	Names map[string]bool
	// Users are the Kubernetes user names of the provider's system when it changes a Node during a
	// step. If the list is nil, the system changes no Node.
	Users []string
	// Concurrent is how many repairs may use the provider at the same time. Zero means any number.
	// The limits of the fleet apply as well.
	Concurrent int
	// Drains reports whether the provider's system drains a Node itself before it replaces the
	// machine. The plan then skips its own drain.
	Drains bool
	// PromisesNone reports whether the provider's system replaces a deleted machine only if the
	// cluster needs another one.
	PromisesNone bool
}

// maxProviderName is the greatest length of a provider's name in a record.
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

// These constants are how strongly a provider claims a Node, the weakest first. With
// claimsSelected, the provider's selector or list of names has the Node. With claimsScheme, the
// Node's providerID has the provider's scheme. With claimsAny, the provider has no such
// restriction, or the Node has no providerID. A provider with a scheme then finds the machine in
// another way, or refuses the step.
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

// Claimants returns the names of the step's providers that claim the Node most strongly. In a
// correct configuration there is exactly one.
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

// ProviderOf returns the name of the provider that carries out the step on the Node. If no provider
// serves the Node, or more than one does, name is empty and against is the reason. Both are empty
// if the step needs no provider: for example, Drydock itself carries out a drain.
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

// ProviderAhead returns the first provider in the plan, beginning with the step at index. It
// returns "" if no provider has a limit, or if no remaining step has a provider. A repair counts
// against the limit of this provider from the start. Otherwise Drydock could drain the node and
// then wait for the provider.
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

// Several reports whether more than one provider is configured for the step. If so, the record must
// name the provider that was called.
func (c *Config) Several(step string) bool {
	n := 0
	for _, p := range c.Providers {
		if slices.Contains(p.Steps, step) {
			n++
		}
	}
	return n > 1
}

// ProviderOfIntent returns the name of the provider that was called for the intent's step. It does
// not need the Node, which may no longer exist.
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

// AsksFirst reports whether Drydock asks other systems before it writes the step's intent: the
// step's provider, or the other repair systems of a shared node.
func (c *Config) AsksFirst(step string) bool {
	of := c.Remediation(step)
	return of.LooksFirst || c.Reserves && of.Disruptive
}

// WorkersOf returns the Kubernetes users of the providers that replace this Node's machine. It
// returns none if the repair in flight has not issued the replacement of this Node. The webhook
// allows changes of the Node by these users, because the changes are part of the step.
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

// These are the waits before Drydock asks a provider again why a step cannot be made. AskPassing is
// for an obstacle that ends by itself, AskMended for one that a person must remove.
const (
	AskPassing = 30 * time.Second
	AskMended  = 5 * time.Minute
)
