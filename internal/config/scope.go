package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// takesGPUNodes warns if a user's policy also selects GPU nodes, and gives them less time to boot
// than the policies for GPU nodes do.
func (c *Config) takesGPUNodes(p PolicyInfo) []Fault {
	wait := c.rebootWait(p)
	if p.Mode == remediations.ModeOff || wait == 0 || len(requirementsOn(p.NodeSelector, signs.GPUCountLabel)) > 0 {
		return nil
	}
	var patient PolicyInfo
	before := true
	for _, other := range c.Policies {
		before = before && other.Name != p.Name
		if before && other.Mode != remediations.ModeOff && forGPUNodes(other) && other.Match.String() == p.Match.String() {
			return nil // that policy repairs all GPU nodes before this one could
		}
		if other.Mode != remediations.ModeOff && forGPUNodes(other) && c.rebootWait(other) > wait && (patient.Policy == nil || c.rebootWait(other) > c.rebootWait(patient)) {
			patient = other
		}
	}
	if patient.Policy == nil {
		return nil
	}
	return []Fault{p.source.locate(p.at, true, fmt.Sprintf("policy %s also selects GPU nodes and gives them %s to boot, but policy %s gives them %s; write a nodeSelector with {key: %s, operator: DoesNotExist}, or a longer wait",
		p.Name, text.Duration(wait), patient.Name, text.Duration(c.rebootWait(patient)), signs.GPUCountLabel))}
}

func (c *Config) rebootWait(p PolicyInfo) (wait time.Duration) {
	for _, s := range p.Plan {
		if p.Kind == remediations.KindNode && c.Core.Remediation(s.Name).Restarts {
			wait = max(wait, s.Wait)
		}
	}
	return wait
}

func requirementsOn(selector k8slabels.Selector, label string) []k8slabels.Requirement {
	if selector == nil {
		return nil
	}
	all, _ := selector.Requirements()
	return slices.DeleteFunc(slices.Clone(all), func(r k8slabels.Requirement) bool { return r.Key() != label })
}

func forGPUNodes(p PolicyInfo) bool {
	return slices.ContainsFunc(requirementsOn(p.NodeSelector, signs.GPUCountLabel), func(r k8slabels.Requirement) bool {
		return r.Operator() != selection.DoesNotExist && r.Operator() != selection.NotIn
	})
}

func notForGPUNodes(p PolicyInfo) bool {
	return slices.ContainsFunc(requirementsOn(p.NodeSelector, signs.GPUCountLabel), func(r k8slabels.Requirement) bool { return r.Operator() == selection.DoesNotExist })
}

// selectsFewer warns if a user's policy selects only some nodes, but other policies use the same
// steps on all nodes. A dead node causes several alerts, so the other policies would still repair
// the nodes that this policy leaves out. There is no warning if another policy handles the same
// alert on those nodes, because then the user wants these nodes repaired.
func (c *Config) selectsFewer(p PolicyInfo) []Fault {
	if p.Kind != remediations.KindNode || p.Mode == remediations.ModeOff || p.NodeSelector == nil {
		return nil
	}
	requirements, _ := p.NodeSelector.Requirements()
	for _, r := range requirements {
		steps, scopes := c.unscoped(p, r.Key())
		if r.Key() == signs.GPUCountLabel || len(steps) == 0 {
			continue
		}
		var sisters []string
		for _, q := range c.Policies {
			switch {
			case q.Name == p.Name || !c.actsBeside(p, q, steps) || len(requirementsOn(q.NodeSelector, r.Key())) > 0:
			case q.Match.String() == p.Match.String() && forGPUNodes(p) == forGPUNodes(q):
				return nil
			default:
				sisters = append(sisters, q.Name)
			}
		}
		if len(sisters) > 0 {
			return []Fault{p.source.locate(p.at.To("nodeSelector"), true, fmt.Sprintf("policy %s selects only nodes with %s, but other policies %s all nodes (%s); to leave the other nodes alone, write the selector in %s instead",
				p.Name, r.String(), strings.Join(steps, " and "), strings.Join(sisters, ", "), strings.Join(scopes, " and ")))}
		}
	}
	return nil
}

// unscoped returns the steps that reboot or replace a machine and whose provider does not select
// its Nodes by the label. scopes are the keys that could limit these providers.
func (c *Config) unscoped(p PolicyInfo, label string) (steps, scopes []string) {
	for _, s := range p.Plan {
		if r := c.Core.Remediation(s.Name); !r.Restarts && !r.Replaces {
			continue
		}
		for _, provider := range c.Core.Providers {
			if !slices.Contains(provider.Steps, s.Name) || len(requirementsOn(provider.NodeSelector, label)) > 0 {
				continue
			}
			steps, scopes = append(steps, s.Name), append(scopes, "providers."+provider.Name+".nodeSelector")
		}
	}
	slices.Sort(steps)
	slices.Sort(scopes)
	return slices.Compact(steps), slices.Compact(scopes)
}

// actsBeside reports whether q may issue one of the steps on a node that p selects, too. If p
// enforces and q only observes, it returns false.
func (c *Config) actsBeside(p, q PolicyInfo, steps []string) bool {
	return q.Kind == remediations.KindNode && (q.Mode == p.Mode || q.Mode == remediations.ModeEnforce) &&
		(!forGPUNodes(p) || !notForGPUNodes(q)) && (!notForGPUNodes(p) || !forGPUNodes(q)) &&
		slices.ContainsFunc(q.Plan, func(s remediations.Step) bool { return slices.Contains(steps, s.Name) })
}
