package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
	annotation "drydock.dev/drydock/remediations/providers/annotation/settings"
	civo "drydock.dev/drydock/remediations/providers/civo/settings"
	clusterapi "drydock.dev/drydock/remediations/providers/clusterapi/settings"
	daemonsets "drydock.dev/drydock/remediations/providers/daemonsets/settings"
	external "drydock.dev/drydock/remediations/providers/external/settings"
	fence "drydock.dev/drydock/remediations/providers/fence/settings"
	hosts "drydock.dev/drydock/remediations/providers/hosts/settings"
	http "drydock.dev/drydock/remediations/providers/http/settings"
	karpenter "drydock.dev/drydock/remediations/providers/karpenter/settings"
	kilo "drydock.dev/drydock/remediations/providers/kilo/settings"
	redfish "drydock.dev/drydock/remediations/providers/redfish/settings"
	sidecar "drydock.dev/drydock/remediations/providers/sidecar/settings"
)

// sections are the sections of all providers. A new provider needs one line here.
var sections = []section.Section{
	civo.Section,
	kilo.Section,
	hosts.Section,
	daemonsets.DaemonSetsSection,
	daemonsets.ClusterWideSection,
	redfish.Section,
	clusterapi.Section,
	karpenter.Section,
	external.Section,
	sidecar.Section,
	annotation.Section,
	http.Section,
	fence.Section,
}

// withSections puts a provider's schema at its marked place. A schema without one goes after the
// others.
func withSections(schema []byte) []byte {
	const behind = `,
        "": {"$comment": "further providers'"}`
	var further strings.Builder
	for _, s := range sections {
		own := fmt.Sprintf(`%q: {"$comment": "its provider's"}`, s.Key)
		text := strings.ReplaceAll(strings.TrimSpace(withLimit(s)), "\n", "\n        ")
		if with := bytes.Replace(schema, []byte(own), fmt.Appendf(nil, "%q: %s", s.Key, text), 1); !bytes.Equal(with, schema) {
			schema = with
			continue
		}
		fmt.Fprintf(&further, ",\n        %q: %s", s.Key, text)
	}
	return bytes.Replace(schema, []byte(behind), []byte(further.String()), 1)
}

const limitSchema = `"concurrent": {"type": "integer", "minimum": 1, "description": "How many repairs may use this provider at the same time, for example 1 if one PDU or one API serves all machines. A repair counts from the drain before its step until the proof after the step. limits.concurrent and the limits per zone and pool also apply. Default: no limit for this provider.", "examples": [1]},
    `

func withLimit(s section.Section) string {
	if !limited(s) {
		return s.Schema
	}
	const selector = `"nodeSelector": {`
	return strings.Replace(s.Schema, selector, limitSchema+selector, 1)
}

func limited(s section.Section) bool {
	for step := range s.Steps {
		if known, _ := remediations.Registry(nil).Of(step); known.Disruptive && known.Target == remediations.KindNode {
			return true
		}
	}
	return false
}

func (b *builder) buildSections() {
	b.config.Providers, b.config.concurrent = map[string]section.Provider{}, map[string]int{}
	for _, s := range sections {
		at := pointer{"providers", s.Key}
		value := b.value(at)
		if value == nil {
			continue
		}
		tree, err := json.Marshal(value)
		if err != nil {
			b.Fault(at, "cannot be decoded: %v", err)
			continue
		}
		if p := s.Read(b, at, tree); p != nil {
			b.config.Providers[s.Key] = p
			var limit struct{ Concurrent int }
			_ = json.Unmarshal(tree, &limit) // the schema has already refused a value that is not a number
			b.config.concurrent[s.Key] = limit.Concurrent
			if with, ok := p.(section.Configurer); ok {
				with.Configure(&b.core)
			}
		}
	}
}

// Of returns the configured provider of the type T, for example *settings.Hosts. ok reports whether
// there is one.
func Of[T section.Provider](c *Config) (provider T, ok bool) {
	for _, p := range c.Providers {
		if provider, ok = p.(T); ok {
			break
		}
	}
	return provider, ok
}
