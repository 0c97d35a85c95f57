// Package routing finds the policy that takes an alert, and the target that the alert is about.
package routing

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// Route is the result for an alert that a policy takes.
type Route struct {
	Policy *remediations.Policy
	// Empty if the alert is about another kind of target.
	Node string
	// The target if it is not a node, from the alert's labels. It may not exist.
	Name string
}

// Of returns the first policy that takes an alert with these labels, and its target. node returns
// the Node with exactly this name, or nil. If no policy takes the alert, the Misroute says why.
func Of(c *remediations.Config, labels map[string]string, node func(name string) *corev1.Node) (Route, remediations.Misroute) {
	if c.OfAnother(labels) {
		return Route{}, remediations.MisrouteOtherCluster
	}
	why := remediations.MisrouteNoPolicy
	for _, p := range c.Policies {
		switch route, against := fit(c, p, labels, node); against {
		case fits:
			return route, remediations.MisrouteNone
		case nodeUnknown:
			return Route{}, remediations.MisrouteUnknownNode
		case nothingNamed:
			why = remediations.MisrouteNoTarget
		case policyOff, unserved, unmatched, unselected:
		}
	}
	return Route{}, why
}

type misfit int

const (
	fits misfit = iota
	policyOff
	unserved
	unmatched
	nothingNamed
	nodeUnknown
	unselected
)

// fit returns the route, or why the policy does not take the alert.
func fit(c *remediations.Config, p *remediations.Policy, labels map[string]string, node func(name string) *corev1.Node) (Route, misfit) {
	switch {
	case p.Mode == remediations.ModeOff:
		return Route{}, policyOff
	case !c.Serves(p):
		return Route{}, unserved
	case !p.Matches(labels):
		return Route{}, unmatched
	}
	name, err := c.NameOf(p, labels)
	if err != nil {
		return Route{}, nothingNamed
	}
	if p.Kind != remediations.KindNode {
		return Route{Policy: p, Name: name}, fits
	}
	n := node(name)
	switch {
	case n == nil:
		return Route{}, nodeUnknown
	case !p.Takes(n):
		return Route{}, unselected
	}
	return Route{Policy: p, Node: name}, fits
}

// NearMiss is a policy that meets some of an alert's conditions but does not take it, so that
// people see what to correct.
type NearMiss struct {
	Policy string `json:"policy"`
	// One sentence for each reason.
	Why []string `json:"why"`
}

// NearMisses returns the policies that do not take the alert although it meets at least one of
// their conditions, in the order of the configuration. It makes the same checks as Of.
func NearMisses(c *remediations.Config, labels map[string]string, node func(name string) *corev1.Node) (out []NearMiss) {
	if c.OfAnother(labels) {
		return nil
	}
	taken := ""
	for _, p := range c.Policies {
		_, against := fit(c, p, labels, node)
		why := whyNot(c, p, against, labels, node)
		switch {
		case against == fits && taken == "":
			taken = p.Name
		case against == fits:
			out = append(out, NearMiss{p.Name, []string{fmt.Sprintf("policy %s takes the alert, because it comes first", taken)}})
		case len(why) < max(1, len(p.Match)) || p.Matches(labels):
			out = append(out, NearMiss{p.Name, why})
		}
	}
	return out
}

// One reason for each label that does not match. If all match, it is the text of the reason
// against.
func whyNot(c *remediations.Config, p *remediations.Policy, against misfit, labels map[string]string, node func(name string) *corev1.Node) (why []string) {
	for _, m := range p.Match {
		switch value, has := labels[m.Name]; {
		case m.Matches(value):
		case has:
			why = append(why, fmt.Sprintf("label %s is %q, and the policy needs %s", m.Name, text.Line(value, 80), m))
		default:
			why = append(why, fmt.Sprintf("the alert has no label %s, and the policy needs %s", m.Name, m))
		}
	}
	if len(why) > 0 {
		return why
	}
	switch against {
	case policyOff:
		return []string{"the policy's mode is off"}
	case unserved:
		return []string{"no provider for the policy's steps is configured"}
	case nothingNamed:
		_, err := c.NameOf(p, labels)
		return []string{fmt.Sprintf("label %s names nothing to repair: %v", strings.Join(p.Labels, " and "), err)}
	case nodeUnknown:
		return []string{fmt.Sprintf("no Node has the name %q", text.Line(labels[p.Labels[0]], 80))}
	case unselected:
		n := node(labels[p.Labels[0]])
		var lacks []string
		requirements, _ := p.NodeSelector.Requirements()
		for _, r := range requirements {
			if !r.Matches(signs.LabelsOf(n)) {
				lacks = append(lacks, fmt.Sprintf("node %s does not match nodeSelector %s", n.Name, r.String()))
			}
		}
		return lacks
	case fits, unmatched:
	}
	return nil
}
