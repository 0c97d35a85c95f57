package config

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// Matchers returns the policy's matchers in Alertmanager's syntax.
func (p PolicyInfo) Matchers() string {
	return strings.TrimSuffix(strings.TrimPrefix(p.Match.String(), "{"), "}")
}

// Selector returns the policy's node selector as text.
func (p PolicyInfo) Selector() string {
	if p.NodeSelector != nil {
		return p.NodeSelector.String()
	}
	for _, k := range kinds {
		if k.Kind == p.Kind {
			return k.Selects
		}
	}
	return "all nodes"
}

// Steps returns a summary of the plan, one text for each step.
func (p PolicyInfo) Steps() string {
	var out []string
	for _, s := range p.Plan {
		var line string
		switch {
		case p.Kind == remediations.KindAPIServer:
			line = fmt.Sprintf("%s %s a host, %s in all", s.Name, text.Duration(s.Wait), text.Duration(s.Timeout))
		case s.Timeout > 0 && s.ContinueOnTimeout:
			line = fmt.Sprintf("%s %s or continue", s.Name, text.Duration(s.Timeout))
		case s.Timeout > 0:
			line = fmt.Sprintf("%s %s or stop", s.Name, text.Duration(s.Timeout))
		default:
			line = fmt.Sprintf("%s %s", s.Name, text.Duration(s.Wait))
		}
		if s.ContinueUnreachable {
			line += " (onUnreachable: continue)"
		}
		if s.WithoutController != remediations.WithoutControllerRefuse {
			line += fmt.Sprintf(" (withoutController: %s)", s.WithoutController)
		}
		if s.Attempts > 1 {
			line = fmt.Sprintf("%s x%d", line, s.Attempts)
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

// PoliciesYAML returns the effective policies with all defaults as YAML, below the key policies.
func (c *Config) PoliciesYAML() ([]byte, error) {
	list := make([]any, len(c.Policies))
	for i, p := range c.Policies {
		list[i] = p.tree
	}
	return encodePolicies(schemaFor(c.Core.Registry).policies.ordered(list))
}

func encodePolicies(list *yaml.Node) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("policies"), list}}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("rendering policies, %w", err)
	}
	return out.Bytes(), nil
}

func scalar(v any) *yaml.Node {
	n := &yaml.Node{}
	// Encode cannot fail here: v comes from a YAML document.
	_ = n.Encode(v)
	return n
}

func (s *schema) ordered(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		if len(s.properties) == 0 {
			return scalar(v)
		}
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, p := range s.properties {
			if value, ok := v[p.name]; ok {
				n.Content = append(n.Content, scalar(p.name), p.ordered(value))
			}
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			child := &schema{}
			if s.items != nil {
				child = s.items
			}
			n.Content = append(n.Content, child.ordered(item))
		}
		return n
	default:
		return scalar(v)
	}
}
