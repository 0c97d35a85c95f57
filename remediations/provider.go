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

// Provider is a system that carries out some steps on some Nodes.
type Provider struct {
	// Name is the provider's key in the configuration. Steps are the remediations that it carries
	// out.
	Name  string
	Steps []string
	// Scheme is the prefix of its Nodes' spec.providerID, for example civo://. Empty: it serves any
	// Node.
	Scheme string
	// NodeSelector, if set, alone selects the Nodes that it serves; their spec.providerID does not
	// count. nil: not configured.
	NodeSelector k8slabels.Selector
	// Names are the Nodes that it serves, if the configuration lists each of them; nil: no list. A
	// Node outside the list is never served.
	Names map[string]bool
	// Users are the users as which the provider's system changes a Node while it carries out a
	// step; nil: it changes no Node.
	Users []string
	// Concurrent is how many repairs may use the provider at once, beside the limits of the fleet;
	// zero: any number.
	Concurrent int
	// Drains: the provider's system drains a Node itself before it replaces the machine. An earlier
	// drain would spoil the step's proof.
	Drains bool
	// PromisesNone: the provider's system replaces a removed machine only if something needs
	// another one.
	PromisesNone bool
}

// maxProviderName bounds the provider's name in a record.
const maxProviderName = 63

// Serves describes the Nodes that the provider serves.
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

// How strongly a provider claims a Node: a selector takes precedence over the scheme, and the
// scheme over a provider of any Node. A Node without a providerID matches every provider, which
// then finds the machine in another way or refuses.
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

// Claimants returns the providers of the step that claim the Node most strongly. A correct
// configuration has exactly one.
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

// ProviderOf returns the name of the one provider that carries out the step on the Node. against
// says why there is no provider, or more than one. Both are empty if no provider has the step, as
// for drain, which a worker carries out.
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
	return "", fmt.Sprintf("%s each serve Node %s for the step %s, so neither is asked; give one of them a nodeSelector. Its spec.providerID is %.200q, and %s", strings.Join(best, " and "), n.Name, step, n.Spec.ProviderID, strings.Join(has, ", "))
}

// ProviderAhead returns the provider that carries out the policy's step at the index or, if no
// provider has that step, as with drain, the next step that one has. Empty: there is none. A repair
// counts against its limit from then on, so that no node is drained that must wait for the provider
// afterwards.
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

// ConcurrentOf returns how many repairs may use the provider at once; zero: any number.
func (c *Config) ConcurrentOf(provider string) int {
	i := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.Name == provider })
	if i < 0 {
		return 0
	}
	return c.Providers[i].Concurrent
}

// Several reports whether more than one provider carries out the step. A record must then name the
// provider that was called.
func (c *Config) Several(step string) bool {
	n := 0
	for _, p := range c.Providers {
		if slices.Contains(p.Steps, step) {
			n++
		}
	}
	return n > 1
}

// ProviderOfIntent returns the name of the provider that the intent's step was issued to. The Node
// may no longer exist, so the record names the provider if there was a choice.
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

// PromisesNone reports whether the provider of the intent's step promises no other machine.
func (c *Config) PromisesNone(step string, i *Intent) bool {
	name := c.ProviderOfIntent(step, i)
	return slices.ContainsFunc(c.Providers, func(p Provider) bool { return p.Name == name && p.PromisesNone })
}

// NeedsProvider reports whether the step, when its turn in a plan comes, needs exactly one provider
// that serves the Node.
func (c *Config) NeedsProvider(s Step, n *corev1.Node) bool {
	of := c.Remediation(s.Name)
	return of.Once && c.Provides(s) && (of.Refuses == nil || of.Refuses(n) == "")
}

// AsksFirst reports whether Drydock asks another system about the machine before it writes the
// step's intent. That is the step's provider, or the repair systems that share the node.
func (c *Config) AsksFirst(step string) bool {
	of := c.Remediation(step)
	return of.LooksFirst || c.Reserves && of.Disruptive
}

// WorkersOf returns the users that carry out the replacement of this very Node, if the record in
// flight has issued it. Their changes to drain and remove the Node are part of the step itself.
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

// How long to wait before Drydock asks a provider again about an obstacle to a step. AskPassing is
// for obstacles that pass by themselves, AskMended for those that a person must repair.
const (
	AskPassing = 30 * time.Second
	AskMended  = 5 * time.Minute
)
