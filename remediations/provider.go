package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
)

// Provider is who carries out some steps on some Nodes.
type Provider struct {
	// Name is the provider's key in the configuration. Steps are the remediations that it carries out here.
	Name  string
	Steps []string
	// Scheme begins the spec.providerID of its Nodes, such as civo://. Empty: it serves any Node.
	Scheme string
	// NodeSelector says alone which Nodes it serves, whatever their spec.providerID is; nil: the configuration has none.
	NodeSelector k8slabels.Selector
	// Names are the Nodes that it serves, where the configuration has something for each of them; nil: they are not named. A Node
	// must be among them, whatever else is true of it.
	Names map[string]bool
	// Users are as whom the system behind the provider works on a Node while it carries out a step; nil: it does not.
	Users []string
	// Drains: that system empties a Node itself before it replaces the machine, and an earlier drain would spoil the step's proof.
	Drains bool
	// PromisesNone: that system makes another machine for one that it took away only where something needs it.
	PromisesNone bool
}

// maxProviderName bounds the provider that a record names.
const maxProviderName = 63

// Serves says in words which Nodes the provider serves.
func (p *Provider) Serves() string {
	if slices.ContainsFunc(p.Steps, func(step string) bool { return shipped[step].Target != KindNode }) {
		return "its own targets" // which are no Nodes
	}
	switch {
	case p.Names != nil && p.NodeSelector != nil && !p.NodeSelector.Empty():
		return fmt.Sprintf("those of the %d Nodes it names that have the labels %s", len(p.Names), p.NodeSelector)
	case p.Names != nil:
		return fmt.Sprintf("the %d Nodes it names", len(p.Names))
	case p.NodeSelector != nil && !p.NodeSelector.Empty():
		return fmt.Sprintf("Nodes with the labels %s", p.NodeSelector)
	case p.NodeSelector == nil && p.Scheme != "":
		return fmt.Sprintf("Nodes whose spec.providerID begins with %s", p.Scheme)
	}
	return "any Node"
}

// How strongly a provider claims a Node: a selector goes before the scheme, and that before a provider of any Node. The providerID
// of a Node that has none is any provider's, which then finds the machine in another way or refuses.
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

// Claimants are the providers of the step that claim the Node most strongly: one, where all is well.
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

// ProviderOf names the one provider that carries out the step on the Node. against says why there is none, or no single one. Of a
// step that no provider has, and of a worker's such as drain, it says nothing.
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

// Several says that more than one provider carries out the step, so that a record must name the one that it was asked of.
func (c *Config) Several(step string) bool {
	n := 0
	for _, p := range c.Providers {
		if slices.Contains(p.Steps, step) {
			n++
		}
	}
	return n > 1
}

// ProviderOfIntent names the provider that the intent's step was asked of. The Node may be gone by now, so the record says it where
// there was a choice.
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

// PromisesNone says that the provider that the intent's step was asked of promises no other machine.
func (c *Config) PromisesNone(step string, i *Intent) bool {
	name := c.ProviderOfIntent(step, i)
	return slices.ContainsFunc(c.Providers, func(p Provider) bool { return p.Name == name && p.PromisesNone })
}

// NeedsProvider says that the step, where it comes in a plan, must have one provider that serves the Node.
func (c *Config) NeedsProvider(s Step, n *corev1.Node) bool {
	of := c.Remediation(s.Name)
	return of.Once && c.Provides(s) && (of.Refuses == nil || of.Refuses(n) == "")
}

// AsksFirst says that somebody is asked about the machine before the step's intent: its provider, or those who share which of them
// repairs a node.
func (c *Config) AsksFirst(step string) bool {
	of := c.Remediation(step)
	return of.LooksFirst || c.Reserves && of.Disruptive
}

// WorkersOf are the users who carry out the replacement of this very Node, which the record in flight has issued: what they do to it,
// to empty it and to take it away, is the step itself.
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

// How long to wait before a provider is asked again about what is against a step: what passes by itself, and what a person must
// mend.
const (
	AskPassing = 30 * time.Second
	AskMended  = 5 * time.Minute
)
