package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"drydock.dev/drydock/remediations"
)

const shippedFrom = "shipped"

func list(words []string) string { return strings.Join(words, ", ") }

// mergePolicies takes each shipped policy whose name no user's policy has. root is the whole
// configuration, which sets the mode of the shipped policies.
func (b *builder) mergePolicies(user *document, raw []rawPolicy, root map[string]any) {
	if user != nil {
		b.policies = b.compilePolicies(pointer{"policies"}, raw, user.name)
	}
	over := map[string]int{}
	for i, p := range b.policies {
		over[p.Name] = i
	}
	for _, p := range b.loadShipped(root) {
		if i, ok := over[p.Name]; ok {
			b.policies[i].shipped, _ = p.tree.(map[string]any)
			continue
		}
		b.policies = append(b.policies, p)
	}
}

// loadShipped puts policies for some nodes before those for all nodes, so that the more specific
// policy matches first.
func (b *builder) loadShipped(root map[string]any) []PolicyInfo {
	var out []PolicyInfo
	eachShipped(func(file string, data []byte) {
		d, policies := loadPolicyFile("shipped/"+file, data, root)
		b.shipped = append(b.shipped, d)
		out = append(out, policies...)
	})
	slices.SortStableFunc(out, func(a, b PolicyInfo) int {
		return cmp.Or(cmp.Compare(forAll(a), forAll(b)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func eachShipped(read func(file string, data []byte)) {
	files, err := fs.Glob(remediations.ShippedPolicies(), "*.yaml")
	if err != nil {
		panic(fmt.Errorf("listing the shipped policies, %w", err)) // impossible: the pattern is a constant
	}
	for _, file := range files {
		data, err := fs.ReadFile(remediations.ShippedPolicies(), file)
		if err != nil {
			panic(fmt.Errorf("reading the shipped policy %s, %w", file, err)) // impossible: the file is embedded
		}
		read(file, data)
	}
}

func forAll(p PolicyInfo) int {
	if p.NodeSelector == nil {
		return 1
	}
	return 0
}

func loadPolicyFile(name string, data []byte, root map[string]any) (*document, []PolicyInfo) {
	d := parse(name, data, "policies")
	if d.tree == nil {
		return d, nil
	}
	s := loadSchema()
	s.policies.fill(d.tree, root)
	d.validate(s.policyList, s.policies)
	var raw []rawPolicy
	d.decode(&raw)
	b := &builder{document: d, skipFiles: true}
	return d, b.compilePolicies(pointer{}, raw, shippedFrom)
}
