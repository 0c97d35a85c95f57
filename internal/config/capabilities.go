package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

type capability struct {
	provider, remediation string
	configured            bool
	// needs is a key below the provider's section. It is empty if the section alone is enough.
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
	return out
}

// Capabilities returns, for each remediation, why this installation cannot carry it out, or "" if
// it can.
func Capabilities(c *Config) map[string]string {
	out, able := map[string]string{"drain": ""}, map[string][]string{}
	for _, a := range c.capabilities() {
		if missing, named := out[a.remediation]; a.configured || named && missing == "" {
			out[a.remediation] = ""
			continue
		}
		able[a.remediation] = append(able[a.remediation], "providers."+a.provider+a.needs)
		out[a.remediation] = absent(able[a.remediation])
	}
	for _, name := range c.Core.Registry.Names() {
		if _, named := out[name]; !named {
			out[name] = fmt.Sprintf("this version cannot %s (ProviderAbsent)", name)
		}
	}
	return out
}

// absent is for a remediation without a configured provider. The user needs only one of able.
func absent(able []string) string {
	last := len(able) - 1
	if last == 0 {
		return able[0] + " is not configured (ProviderAbsent)"
	}
	return fmt.Sprintf("no provider for it is configured; add %s or %s (ProviderAbsent)", strings.Join(able[:last], ", "), able[last])
}

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
			p.Name, p.Steps, p.Concurrent = a.provider, nil, c.concurrent[a.provider]
			out = append(out, p)
		}
		p := &out[len(out)-1]
		p.Steps = append(p.Steps, a.remediation)
	}
	return out
}

func (c *Config) testifies() bool {
	for _, p := range c.Providers {
		if t, ok := p.(section.Testifier); ok && t.Testifies() {
			return true
		}
	}
	return false
}
