package config

import (
	"fmt"
	"slices"

	"drydock.dev/drydock/remediations"
)

// provide notes in the core which remediations can be carried out.
func (c *Config) provide(capabilities map[string]string) {
	c.Core.Provided, c.Core.SidecarProviders = map[string]bool{}, map[string]bool{}
	for name, missing := range capabilities {
		if missing == "" {
			c.Core.Provided[name] = true
		}
	}
	for _, s := range c.Sidecars {
		c.Core.SidecarProviders[s.Name] = true
	}
}

// warnings returns what a person should know about a configuration that can be used.
func (c *Config) warnings(d *document, capabilities map[string]string) []Fault {
	var out []Fault
	warn := func(d *document, p pointer, format string, args ...any) {
		out = append(out, d.locate(p, true, fmt.Sprintf(format, args...)))
	}
	if c.Webhook != nil {
		for _, i := range c.Webhook.exemptsNearlyAll() {
			warn(d, pointer{"webhook"}.to("exempt", "groups", i), "%s is nearly everybody: whom it exempts is not kept from a node under repair; name the controllers instead", c.Webhook.Exempt.Groups[i])
		}
	}
	if c.Alertmanager.Watchdog == nil {
		warn(d, pointer{"alertmanager", "watchdog"}, "no Watchdog is asked for: that Prometheus stopped sending alerts will look like all alerts having ended")
	}
	if c.Receiver.Insecure && c.enforces() {
		warn(d, pointer{"receiver", "insecure"}, "anybody who reaches the receiver can post alerts, and a policy enforces; set tokenFile or mutual TLS")
	}
	if c.Civo != nil && c.Civo.APIURL.Scheme != "https" && !loopbackHost(c.Civo.APIURL.Hostname()) {
		warn(d, pointer{"providers", "civo", "apiURL"}, "is not https: the API key travels in clear text")
	}
	sortFaults(out)
	for _, p := range c.Policies {
		if p.Pod != nil && p.From == shippedFrom && len(c.Sidecars) == 0 {
			continue // nobody asked for sidecars
		}
		if p.Location != "" && p.From == shippedFrom && c.Kilo == nil {
			continue // nor for the mesh
		}
		if p.APIServer && p.From == shippedFrom && c.ControlPlane == nil {
			continue // nor for the control plane
		}
		var of []Fault
		able := false
		for i, step := range p.Plan {
			missing, known := capabilities[step.Name]
			if !known {
				missing = "this version does not know it (ProviderAbsent)"
			}
			if missing == "" && p.Pod != nil && !c.Core.SidecarProviders[step.Provider] {
				missing = fmt.Sprintf("providers.sidecars has none of the name %q", step.Provider)
			}
			if missing == "" && p.APIServer && c.ControlPlane == nil {
				missing = "controlPlane is not configured (ProviderAbsent)"
			}
			if missing == "" && !remediations.Registry[step.Name].Once && i < len(p.Plan)-1 && !possible(p.Plan[i+1:], capabilities) {
				missing = "it prepares those after it, of which none can be carried out"
			}
			if missing == "" {
				able = true
				continue
			}
			of = append(of, p.source.locate(p.at.to("plan", i), true,
				fmt.Sprintf("step %s of policy %s will be skipped: %s", step.Name, p.Name, missing)))
		}
		if !able {
			of = append(of, p.source.locate(p.at.to("plan"), true,
				fmt.Sprintf("policy %s can do nothing: none of its steps can be carried out", p.Name)))
		}
		if p.Mode != remediations.ModeOff {
			sortFaults(of)
			out = append(out, of...)
		}
	}
	return out
}

// possible says that any of the steps can be carried out.
func possible(steps []remediations.Step, capabilities map[string]string) bool {
	return slices.ContainsFunc(steps, func(s remediations.Step) bool {
		missing, known := capabilities[s.Name]
		return known && missing == ""
	})
}

func (c *Config) enforces() bool {
	for _, p := range c.Policies {
		if p.Mode == remediations.ModeEnforce {
			return true
		}
	}
	return c.Mode == remediations.ModeEnforce
}
