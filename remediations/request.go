package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The prefixes of the two forms of RequestKey. A name follows.
const (
	RequestPolicy      = "policy/"
	RequestRemediation = "remediation/"
)

// requestProofFor applies to a requested remediation if no policy for the node has that step.
const requestProofFor = 30 * time.Second

// ParseRequest parses "policy/<name>", "remediation/<name>" or only the name, which is an error if
// a policy and a remediation share it. It returns the form with the prefix. The error explains how
// to write a request.
func (c *Config) ParseRequest(v string) (string, error) {
	v = strings.TrimSpace(v)
	if name, ok := strings.CutPrefix(v, RequestPolicy); ok {
		p := c.Policy(name)
		if p == nil || p.Mode == ModeOff {
			return "", fmt.Errorf("%s=%q: there is no policy with this name; `drydock policies` lists all policies", RequestKey, clip(v, 80))
		}
		if why := c.kind(p.Kind).NotAsked; why != "" {
			return "", fmt.Errorf("%s=%q: %s", RequestKey, clip(v, 80), why)
		}
		return v, nil
	}
	if name, ok := strings.CutPrefix(v, RequestRemediation); ok {
		switch r, known := c.Registry.Of(name); {
		case known && !r.Once:
			return "", fmt.Errorf("%s=%q: %s only prepares another step and would cure nothing; request a policy that has it, or use kubectl %[3]s", RequestKey, clip(v, 80), name)
		case !known || r.Target != KindNode:
			return "", fmt.Errorf("%s=%q: there is no remediation for nodes with this name; the valid names are %s", RequestKey, clip(v, 80), strings.Join(c.nodeRemediations(), ", "))
		case r.ClusterWide:
			return "", fmt.Errorf("%s=%q: %s changes the whole cluster, so it cannot be requested for one node; only a policy issues it, for alerts about many nodes", RequestKey, clip(v, 80), name)
		case !c.Provided[name], r.Replaces && !c.Provided[drain.Name]:
			return "", fmt.Errorf("%s=%q: this installation cannot carry out %s, because a provider that it needs is not configured", RequestKey, clip(v, 80), name)
		}
		return v, nil
	}
	policy, noPolicy := c.ParseRequest(RequestPolicy + v)
	remediation, noRemediation := c.ParseRequest(RequestRemediation + v)
	switch {
	case v == "" || (noPolicy != nil && noRemediation != nil):
		return "", fmt.Errorf("%s=%q is not understood: write policy/<name> or remediation/<name>, for example %q", RequestKey, clip(v, 80), "remediation/reboot")
	case noPolicy == nil && noRemediation == nil:
		return "", fmt.Errorf("%s=%q is both a policy and a remediation: write policy/%[2]s or remediation/%[2]s", RequestKey, clip(v, 80))
	case noPolicy == nil:
		return policy, nil
	}
	return remediation, nil
}

func (c *Config) nodeRemediations() []string {
	return slices.DeleteFunc(c.Registry.Names(), func(name string) bool {
		r := c.Remediation(name)
		return r.Target != KindNode || !r.Once || r.ClusterWide
	})
}

// Requested returns the policy that carries out a request on the node, or nil if no policy may. A
// requested remediation is one attempt of one step, with a drain before a replacement. Its settings
// come from the first policy that selects the node and has the step.
func (c *Config) Requested(request string, n *corev1.Node) *Policy {
	selects := func(p *Policy) bool { return p.Mode != ModeOff && p.Kind == KindNode && p.Takes(n) }
	if name, ok := strings.CutPrefix(request, RequestPolicy); ok {
		if p := c.Policy(name); p != nil && selects(p) {
			return p
		}
		return nil
	}
	name := strings.TrimPrefix(request, RequestRemediation)
	out := &Policy{Name: request, Labels: []string{"node"}, Mode: c.Mode, Plan: []Step{{Name: name, Wait: c.Remediation(name).Wait, Attempts: 1}}, ProofFor: requestProofFor}
	for _, p := range c.Policies {
		if !selects(p) {
			continue
		}
		for _, s := range p.Plan {
			if s.Name == name {
				s.Attempts, s.Soft = 1, false // there is no second attempt that could cut the power
				out.Mode, out.Plan, out.ProofFor, out.RepairCordoned, out.Labels = p.Mode, c.drainedFirst(p.Plan, s), p.ProofFor, p.RepairCordoned, p.Labels
				return out
			}
		}
	}
	switch name {
	case restartUnit.Name, external.Name, externalReplace.Name:
		return nil // only a policy's plan can name the unit or the template
	}
	out.Plan = c.drainedFirst(nil, out.Plan[0])
	return out
}

// requestDrainFor applies if no plan gives a timeout. It equals the default of a drain.
const requestDrainFor = 30 * time.Minute

// A replacement deletes everything on the machine, so it needs a drain first, with the settings
// that plan gives, if any.
func (c *Config) drainedFirst(plan []Step, s Step) []Step {
	if !c.Remediation(s.Name).Replaces {
		return []Step{s}
	}
	first := Step{Name: drain.Name, Timeout: requestDrainFor, Attempts: 1}
	for _, d := range plan {
		if d.Name == drain.Name {
			first = d
		}
	}
	return []Step{first, s}
}

// PolicyNames returns all values of the label policy in metrics: the names of policies, and the
// requests for one remediation.
func (c *Config) PolicyNames() []string {
	var out []string
	for _, p := range c.Policies {
		out = append(out, p.Name)
	}
	for _, name := range c.nodeRemediations() {
		if c.Provided[name] {
			out = append(out, RequestRemediation+name)
		}
	}
	return out
}

// PolicyOf returns the policy of a repair on the node, or nil if it is no longer configured. name
// is Record.Policy: a policy's name, or a requested remediation.
func (c *Config) PolicyOf(name string, n *corev1.Node) *Policy {
	if strings.HasPrefix(name, RequestRemediation) {
		p := c.Requested(name, n)
		if r := c.Registry.ReadJournal(n).Record; p != nil && r != nil && r.Policy == name && r.Step == (StepRef{Name: replace.Name, Attempt: 1}) {
			p.Plan = p.Plan[1:] // a record of an older version, whose plan had no drain: without this its replacement would be issued twice
		}
		return p
	}
	return c.Policy(name)
}
