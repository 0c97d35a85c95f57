package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Forms of a request in RequestKey.
const (
	RequestPolicy      = "policy/"
	RequestRemediation = "remediation/"
)

// requestProofFor is how long a cure must hold if the requested remediation is in no policy.
const requestProofFor = 30 * time.Second

// ParseRequest parses drydock.dev/request: "policy/<name>", "remediation/<name>", or the bare name
// if only one of the two exists. It returns the whole form. The error explains how to write a
// request.
func (c *Config) ParseRequest(v string) (string, error) {
	v = strings.TrimSpace(v)
	if name, ok := strings.CutPrefix(v, RequestPolicy); ok {
		p := c.Policy(name)
		if p == nil || p.Mode == ModeOff {
			return "", fmt.Errorf("%s=%q: there is no policy of that name; `drydock policies` lists them", RequestKey, clip(v, 80))
		}
		if why := c.kind(p.Kind).NotAsked; why != "" {
			return "", fmt.Errorf("%s=%q: %s", RequestKey, clip(v, 80), why)
		}
		return v, nil
	}
	if name, ok := strings.CutPrefix(v, RequestRemediation); ok {
		switch r, known := c.Registry.Of(name); {
		case known && !r.Once:
			return "", fmt.Errorf("%s=%q: it only prepares another step and would cure nothing; ask for a policy that has it, or use kubectl %s", RequestKey, clip(v, 80), name)
		case !known || r.Target != KindNode:
			return "", fmt.Errorf("%s=%q: there is no remediation of a node of that name; there are %s", RequestKey, clip(v, 80), strings.Join(c.nodeRemediations(), ", "))
		case r.ClusterWide:
			return "", fmt.Errorf("%s=%q: it changes the whole cluster, so one node cannot request it; a policy does it, for alerts about many nodes", RequestKey, clip(v, 80))
		case !c.Provided[name], r.Replaces && !c.Provided[drain.Name]:
			return "", fmt.Errorf("%s=%q: this installation cannot carry it out, since its provider is not configured", RequestKey, clip(v, 80))
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

// Requested returns the policy that carries out a request; nil: none for this node. For a
// remediation, that is one attempt of one step. The step comes from the first policy that selects
// this node and has the step in its plan, so that a GPU node gets its own policy's wait. A drain
// comes before a replacement.
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
				s.Attempts, s.Soft = 1, false // the only attempt cuts the power
				out.Mode, out.Plan, out.ProofFor, out.RepairCordoned, out.Labels = p.Mode, c.drainedFirst(p.Plan, s), p.ProofFor, p.RepairCordoned, p.Labels
				return out
			}
		}
	}
	switch name {
	case restartUnit.Name, external.Name, externalReplace.Name:
		return nil // only a plan names the unit, the DaemonSet or the template
	}
	out.Plan = c.drainedFirst(nil, out.Plan[0])
	return out
}

// requestDrainFor is the timeout of the drain before a requested replacement if no plan has a
// drain: the step's default.
const requestDrainFor = 30 * time.Minute

// drainedFirst returns the plan for a requested step. A replacement deletes the machine with all
// that is on it, so a drain comes before it. The drain is the one of the plan that has the step.
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

// PolicyNames returns the names that metrics count repairs by: the policies, and the requests for a
// single remediation.
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

// PolicyOf returns the policy with the name for a repair on the node: a configured policy, or the
// policy of a person's request for a remediation. nil: the policy is no longer configured.
func (c *Config) PolicyOf(name string, n *corev1.Node) *Policy {
	if strings.HasPrefix(name, RequestRemediation) {
		p := c.Requested(name, n)
		if r := c.Registry.ReadJournal(n).Record; p != nil && r != nil && r.Policy == name && r.Step == (StepRef{Name: replace.Name, Attempt: 1}) {
			p.Plan = p.Plan[1:] // an older version's plan was the replacement alone: the node must not be replaced a second time
		}
		return p
	}
	return c.Policy(name)
}
