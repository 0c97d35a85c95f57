package config

import (
	"fmt"
	"maps"
	"slices"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

// capability is one remediation, the provider under providers that carries it out, and whether the configuration has what it needs.
type capability struct {
	provider, remediation string
	configured            bool
	// needs is the key below the provider's own without which it cannot; empty: the provider's own.
	needs string
}

func (c *Config) capabilities() []capability {
	var out []capability
	for _, s := range sections {
		var serves []string
		if p := c.Providers[s.Key]; p != nil {
			serves = p.Serves().Steps
		}
		for _, step := range slices.Sorted(maps.Keys(s.Steps)) {
			out = append(out, capability{s.Key, step, slices.Contains(serves, step), s.Steps[step]})
		}
	}
	return append(out, capability{"sidecars", "mark-ready", len(c.Sidecars) > 0, ""})
}

// Capabilities says of each remediation why this installation cannot carry it out; empty: it can.
func Capabilities(c *Config) map[string]string {
	out := map[string]string{"drain": ""}
	for _, a := range c.capabilities() {
		switch missing, named := out[a.remediation]; {
		case a.configured:
			out[a.remediation] = ""
		case !named:
			out[a.remediation] = fmt.Sprintf("providers.%s%s is not configured (ProviderAbsent)", a.provider, a.needs)
		case missing != "": // any of several would do
			out[a.remediation] = fmt.Sprintf("providers.%s%s is not configured, and %s", a.provider, a.needs, missing)
		}
	}
	for _, name := range c.further.Remediations.Names() {
		if _, named := out[name]; !named {
			out[name] = fmt.Sprintf("this version cannot %s (ProviderAbsent)", name)
		}
	}
	return out
}

// providers are those that are configured, and which Nodes each of them serves.
func (c *Config) providers() []remediations.Provider {
	var out []remediations.Provider
	for _, a := range c.capabilities() {
		if !a.configured {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Name != a.provider {
			var p remediations.Provider
			if own := c.Providers[a.provider]; own != nil {
				p = own.Serves()
			}
			p.Name, p.Steps = a.provider, nil
			out = append(out, p)
		}
		p := &out[len(out)-1]
		p.Steps = append(p.Steps, a.remediation)
	}
	return out
}

// testifies says that some provider can be asked whether a machine runs.
func (c *Config) testifies() bool {
	for _, p := range c.Providers {
		if t, ok := p.(section.Testifier); ok && t.Testifies() {
			return true
		}
	}
	return false
}
