// Package routing finds the policy that takes an alert, and the target of the alert.
package routing

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// Route is the policy and the target of an alert.
type Route struct {
	Policy *remediations.Policy
	// Node is the node that the alert is about. Empty: the alert is about another target, which
	// Name identifies by the alert's labels alone. The API server or the mesh shows where that
	// target is, and whether it exists.
	Node, Name string
}

// Of finds the policy and the node of an alert, or its other target. node looks a Node up by its
// exact name.
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

// misfit is what keeps a policy from taking an alert.
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

// fit reports whether the policy takes the alert, and returns its target.
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

// NearMiss is a policy that is related to an alert and does not take it.
type NearMiss struct {
	Policy string `json:"policy"`
	// Why has a sentence for each reason.
	Why []string `json:"why"`
}

// NearMisses returns the policies that share a label with the alert, or select it, and do not take
// it, in the order of the configuration. It makes the same checks as Of.
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
			out = append(out, NearMiss{p.Name, []string{fmt.Sprintf("policy %s comes first", taken)}})
		case len(why) < max(1, len(p.Match)) || p.Matches(labels):
			out = append(out, NearMiss{p.Name, why})
		}
	}
	return out
}

// whyNot describes what keeps the policy from taking the alert, label by label.
func whyNot(c *remediations.Config, p *remediations.Policy, against misfit, labels map[string]string, node func(name string) *corev1.Node) (why []string) {
	for _, m := range p.Match {
		switch value, has := labels[m.Name]; {
		case m.Matches(value):
		case has:
			why = append(why, fmt.Sprintf("label %s is %q, the policy wants %s", m.Name, text.Line(value, 80), m))
		default:
			why = append(why, fmt.Sprintf("the alert has no label %s, the policy wants %s", m.Name, m))
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
		return []string{fmt.Sprintf("there is no node %q", text.Line(labels[p.Labels[0]], 80))}
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
