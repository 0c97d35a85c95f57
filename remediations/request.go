package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
)

// Forms of a request: what a person asks for in RequestKey.
const (
	requestPolicy      = "policy/"
	requestRemediation = "remediation/"
)

// requestProofFor is how long a cure must hold where a remediation is asked for that stands in no policy.
const requestProofFor = 30 * time.Second

// ParseRequest reads drydock.dev/request: "policy/<name>", "remediation/<name>", or the bare name where only one of the
// two exists. It gives the whole form. The error says how to write it.
func (c *Config) ParseRequest(v string) (string, error) {
	v = strings.TrimSpace(v)
	if name, ok := strings.CutPrefix(v, requestPolicy); ok {
		if p := c.Policy(name); p == nil || p.Mode == ModeOff {
			return "", fmt.Errorf("%s=%q: there is no policy of that name; `drydock policies` lists them", RequestKey, clip(v, 80))
		}
		return v, nil
	}
	if name, ok := strings.CutPrefix(v, requestRemediation); ok {
		switch r, known := Registry[name]; {
		case !known || r.Target != "":
			return "", fmt.Errorf("%s=%q: there is no remediation of a node of that name; there are %s", RequestKey, clip(v, 80), strings.Join(nodeRemediations(), ", "))
		case !c.Provided[name]:
			return "", fmt.Errorf("%s=%q: this installation cannot carry it out, since its provider is not configured", RequestKey, clip(v, 80))
		}
		return v, nil
	}
	policy, noPolicy := c.ParseRequest(requestPolicy + v)
	remediation, noRemediation := c.ParseRequest(requestRemediation + v)
	switch {
	case v == "" || (noPolicy != nil && noRemediation != nil):
		return "", fmt.Errorf("%s=%q is not understood: write policy/<name> or remediation/<name>, such as %q", RequestKey, clip(v, 80), "remediation/reboot")
	case noPolicy == nil && noRemediation == nil:
		return "", fmt.Errorf("%s=%q is both a policy and a remediation: write policy/%[2]s or remediation/%[2]s", RequestKey, clip(v, 80))
	case noPolicy == nil:
		return policy, nil
	}
	return remediation, nil
}

func nodeRemediations() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return Registry[name].Target != "" })
}

// requested is the policy by which a request is carried out. For a remediation that is one attempt of its one step, as
// the first policy has it that takes this node and has the step in its plan: a GPU node boots for as long as its own
// policy says, whoever asked. nil: there is none for this node.
func (c *Config) requested(request string, n *corev1.Node) *Policy {
	selects := func(p *Policy) bool {
		return p.Mode != ModeOff && (p.NodeSelector == nil || p.NodeSelector.Matches(k8slabels.Set(n.Labels)))
	}
	if name, ok := strings.CutPrefix(request, requestPolicy); ok {
		if p := c.Policy(name); p != nil && selects(p) {
			return p
		}
		return nil
	}
	name := strings.TrimPrefix(request, requestRemediation)
	out := &Policy{Name: request, Mode: c.Mode, Plan: []Step{{Name: name, Wait: Registry[name].Wait, Attempts: 1}}, ProofFor: requestProofFor}
	for _, p := range c.Policies {
		if !selects(p) {
			continue
		}
		for _, s := range p.Plan {
			if s.Name == name {
				s.Attempts = 1
				out.Mode, out.Plan, out.ProofFor, out.RepairCordoned = p.Mode, []Step{s}, p.ProofFor, p.RepairCordoned
				return out
			}
		}
	}
	return out
}

// policyOf is the policy of a repair on the node, which is no configured one where a person asked for a remediation.
func (c *Config) policyOf(name string, n *corev1.Node) *Policy {
	if strings.HasPrefix(name, requestRemediation) {
		return c.requested(name, n)
	}
	return c.Policy(name)
}
