package remediations

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// NearMiss is a policy that has to do with an alert and does not take it.
type NearMiss struct {
	Policy string `json:"policy"`
	// Why has a sentence for each thing that keeps it from that.
	Why []string `json:"why"`
}

// NearMisses are the policies that share a label with the alert, or select it, and do not take it, in the order in which they are
// asked. It asks what Route asks.
func (c *Config) NearMisses(labels map[string]string, node func(name string) *corev1.Node) (out []NearMiss) {
	if c.ofAnother(labels) {
		return nil
	}
	taken := ""
	for _, p := range c.Policies {
		_, against := c.fit(p, labels, node)
		why := c.whyNot(p, against, labels, node)
		switch {
		case against == fits && taken == "":
			taken = p.Name
		case against == fits:
			out = append(out, NearMiss{p.Name, []string{fmt.Sprintf("policy %s comes first", taken)}})
		case len(why) < max(1, len(p.Match)) || matches(p.Match, labels):
			out = append(out, NearMiss{p.Name, why})
		}
	}
	return out
}

// whyNot words what keeps the policy from taking the alert, label by label.
func (c *Config) whyNot(p *Policy, against misfit, labels map[string]string, node func(name string) *corev1.Node) (why []string) {
	for _, m := range p.Match {
		switch value, has := labels[m.Name]; {
		case m.Matches(value):
		case has:
			why = append(why, fmt.Sprintf("label %s is %q, the policy wants %s", m.Name, clip(value, 80), m))
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
		_, err := c.nameOf(p, labels)
		return []string{fmt.Sprintf("label %s names nothing to repair: %v", strings.Join(p.Labels, " and "), err)}
	case nodeUnknown:
		return []string{fmt.Sprintf("there is no node %q", clip(labels[p.Labels[0]], 80))}
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
