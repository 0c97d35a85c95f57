package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/text"
)

// shippedTrees has the policies as in their files, without defaults.
var shippedTrees = sync.OnceValue(func() map[string]map[string]any {
	out := map[string]map[string]any{}
	eachShipped(func(file string, data []byte) {
		policies, _ := parse("shipped/"+file, data, "policies").tree.([]any)
		for _, p := range policies {
			if p, ok := p.(map[string]any); ok {
				out[fmt.Sprint(p["name"])] = p
			}
		}
	})
	return out
})

// ShippedPolicyNames returns the names of the shipped policies, sorted.
func ShippedPolicyNames() []string { return slices.Sorted(maps.Keys(shippedTrees())) }

// layOverShipped adds the keys that only the shipped policy has. If both have a key, the
// configuration's value replaces the shipped value as a whole.
func (d *document) layOverShipped() {
	policies, _ := d.value(pointer{"policies"}).([]any)
	for i, item := range policies {
		own, _ := item.(map[string]any)
		name, _ := own["name"].(string)
		if name == "" {
			continue
		}
		shipped, ok := shippedTrees()[name]
		if !ok {
			d.meantShipped(pointer{"policies"}.To(i), own, name)
			continue
		}
		for key, value := range shipped {
			if _, present := own[key]; !present {
				own[key] = clone(value)
			}
		}
	}
}

// meantShipped is for a policy without match and plan whose name resembles that of a shipped
// policy. The user probably misspelt the shipped policy's name.
func (d *document) meantShipped(at pointer, own map[string]any, name string) {
	if own["match"] != nil || own["plan"] != nil {
		return
	}
	if near := text.Nearest(name, ShippedPolicyNames()); near != "" {
		d.Fault(at, "there is no shipped policy %q, and a policy of your own needs match and plan; did you mean %q?", name, near)
	}
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = clone(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clone(item)
		}
		return out
	default:
		return v
	}
}

// ChangesYAML returns the configuration's own policies as YAML, below the key policies. A policy
// that changes a shipped one has only the keys that differ, each below a comment with the shipped
// value. Every other policy is complete.
func (c *Config) ChangesYAML() ([]byte, error) {
	items := loadSchema().policies.items
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, p := range c.Policies {
		own, _ := p.tree.(map[string]any)
		switch {
		case p.From == shippedFrom:
		case p.shipped == nil:
			list.Content = append(list.Content, items.ordered(own))
		default:
			if changed := items.changes(own, p.shipped); len(changed.Content) > 2 {
				list.Content = append(list.Content, changed)
			}
		}
	}
	if len(list.Content) == 0 {
		list.Style = yaml.FlowStyle
	}
	return encodePolicies(list)
}

// changes returns the keys of own that differ from shipped, each below a comment with the shipped
// value.
func (s *schema) changes(own, shipped map[string]any) *yaml.Node {
	differ := map[string]any{"name": own["name"]}
	for key, value := range own {
		if !same(value, shipped[key]) {
			differ[key] = value
		}
	}
	out := s.ordered(differ)
	for i := 0; i < len(out.Content); i += 2 {
		key := out.Content[i]
		if was, ok := shipped[key.Value]; key.Value != "name" {
			key.HeadComment = "shipped: none"
			if ok {
				key.HeadComment = "shipped: " + flow(was)
			}
		}
	}
	return out
}

// same compares JSON: int 1 and float64 1 are the same.
func same(a, b any) bool {
	first, err := json.Marshal(a)
	if err != nil {
		return false
	}
	second, err := json.Marshal(b)
	return err == nil && bytes.Equal(first, second)
}
