package config

import (
	"cmp"
	"fmt"

	"drydock.dev/drydock/remediations"
)

// civoScheme begins the spec.providerID of Civo's Nodes.
const civoScheme = "civo://"

// capability is one remediation, the provider under providers that carries it out, and whether the configuration has what it needs.
type capability struct {
	provider, remediation string
	configured            bool
	// needs is the key below the provider's own without which it cannot; empty: the provider's own.
	needs string
}

func (c *Config) capabilities() []capability {
	hosts, wide := cmp.Or(c.Hosts, &Hosts{}), cmp.Or(c.ClusterWide, &ClusterWide{})
	return []capability{
		{"civo", "reboot", c.Civo != nil, ""},
		{"civo", "replace", c.Civo != nil, ""},
		{"sidecars", "mark-ready", len(c.Sidecars) > 0, ""},
		{"kilo", "promote-leader", c.Kilo != nil, ""},
		{"hosts", "restart-kubelet", c.Hosts != nil, ""},
		{"hosts", "restart-containerd", c.Hosts != nil, ""},
		{"hosts", "restart-unit", len(hosts.Units) > 0, ".units"},
		{"daemonSets", "restart-kube-proxy", c.DaemonSets.KubeProxy.Name != "", ".kubeProxy"},
		{"daemonSets", "restart-cni", c.DaemonSets.CNI.Name != "", ".cni"},
		{"clusterWide", "rollout-restart", len(wide.RolloutRestart) > 0, ".rolloutRestart"},
		{"clusterWide", "apply-cni", wide.CNI != nil, ".cni"},
	}
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
	for _, name := range remediationNames() {
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
			out = append(out, remediations.Provider{Name: a.provider})
		}
		p := &out[len(out)-1]
		p.Steps = append(p.Steps, a.remediation)
		if a.provider == "civo" {
			p.Scheme, p.NodeSelector = civoScheme, c.Civo.NodeSelector
		}
	}
	return out
}
