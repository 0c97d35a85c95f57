package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

func (c *Config) provide(capabilities map[string]string) {
	c.Core.Kinds, c.Core.Providers = kinds, c.providers()
	c.Core.Provided = map[string]bool{}
	for name, missing := range capabilities {
		if missing == "" {
			c.Core.Provided[name] = true
		}
	}
}

func (c *Config) warnings(d *document, capabilities map[string]string) []Fault {
	var out []Fault
	warn := func(p pointer, format string, args ...any) {
		out = append(out, d.locate(p, true, fmt.Sprintf(format, args...)))
	}
	if c.Webhook != nil {
		for _, i := range c.Webhook.exemptsNearlyAll() {
			warn(pointer{"webhook"}.To("exempt", "groups", i), "the group %s contains nearly every user, and exempt users may change a node under repair; name the controllers instead", c.Webhook.Exempt.Groups[i])
		}
	}
	if c.Alertmanager.Watchdog == nil {
		warn(pointer{"alertmanager", "watchdog"}, "no Watchdog is configured: Drydock cannot distinguish a Prometheus that stopped from alerts that have ended")
	}
	if c.Receiver.Insecure && c.Enforces() {
		warn(pointer{"receiver", "insecure"}, "every client that reaches the receiver can post alerts, and policies enforce; write tokenFile or use mutual TLS")
	}
	for _, s := range sections {
		if p, ok := c.Providers[s.Key].(section.Warner); ok {
			p.Warn(pointer{"providers", s.Key}, warn)
		}
		if p, ok := c.Providers[s.Key].(section.Planned); ok {
			p.WarnOfPlans(pointer{"providers", s.Key}, c.planned, warn)
		}
	}
	sortFaults(out)
	for _, p := range c.Policies {
		if p.From != shippedFrom {
			out = append(out, c.unwitnessed(p)...)
			out = append(out, c.takesGPUNodes(p)...)
			out = append(out, c.selectsFewer(p)...)
			out = append(out, c.idle(p, capabilities)...)
			out = append(out, c.oddWaits(p)...)
		}
	}
	if !c.shippedRepair(capabilities) {
		for _, message := range append(c.shippedUnwitnessed(), c.shippedIdle(capabilities)...) {
			warn(pointer{"policies"}, "%s", message)
		}
	}
	return out
}

func (c *Config) shippedInUse() (out []PolicyInfo) {
	for _, p := range c.Policies {
		if p.From == shippedFrom && p.Mode != remediations.ModeOff && !c.unasked(p) {
			out = append(out, p)
		}
	}
	return out
}

// shippedRepair reports whether at least one step of a shipped policy about nodes can be carried
// out. Then other steps cause no warning: hardly any installation has a provider for every step.
func (c *Config) shippedRepair(capabilities map[string]string) bool {
	return slices.ContainsFunc(c.shippedInUse(), func(p PolicyInfo) bool {
		return p.Kind == remediations.KindNode && slices.Contains(c.skipped(p, capabilities), "")
	})
}

func (c *Config) unused(capabilities map[string]string) string {
	if !c.shippedRepair(capabilities) {
		return "" // in this case, warnings name them
	}
	var steps, idle []string
	for _, p := range c.shippedInUse() {
		why := c.skipped(p, capabilities)
		for i, missing := range why {
			if missing != "" && missing != preparesNothing {
				steps = append(steps, p.Plan[i].Name)
			}
		}
		seen := p.Witness == nil || p.Witness.None || slices.ContainsFunc(p.Witness.Signs, func(s signs.Sign) bool { return c.mute(s) == "" })
		if !seen || !slices.Contains(why, "") {
			idle = append(idle, p.Name)
		}
	}
	var said []string
	for _, of := range []struct {
		what  string
		names []string
	}{{"shipped policies ", idle}, {"steps of shipped policies ", steps}} {
		if slices.Sort(of.names); len(of.names) > 0 {
			said = append(said, of.what+strings.Join(slices.Compact(of.names), ", "))
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "not used, because no provider for them is configured: " + strings.Join(said, "; ")
}

func (c *Config) planned(step string) bool {
	return slices.ContainsFunc(c.Policies, func(p PolicyInfo) bool {
		return p.Mode != remediations.ModeOff && slices.ContainsFunc(p.Plan, func(s remediations.Step) bool { return s.Name == step })
	})
}

// skipped returns why each step cannot be carried out, or "" if it can.
func (c *Config) skipped(p PolicyInfo, capabilities map[string]string) []string {
	why := make([]string, len(p.Plan))
	for i, step := range p.Plan {
		missing, known := capabilities[step.Name]
		switch {
		case !known:
			missing = "this version of Drydock does not know the step (ProviderAbsent)"
		case missing != "":
		case p.Kind == remediations.KindSidecar && !c.Core.SidecarProviders[step.Provider]:
			missing = fmt.Sprintf("providers.sidecars has none of the name %q (ProviderAbsent)", step.Provider)
		case p.Kind == remediations.KindAPIServer && c.ControlPlane == nil:
			missing = "controlPlane is not configured (ProviderAbsent)"
		case !c.Core.Remediation(step.Name).Once && i < len(p.Plan)-1 && !possible(p.Plan[i+1:], capabilities):
			missing = preparesNothing
		}
		why[i] = missing
	}
	return why
}

// longestWait is the longest wait without a warning. The node stays unhealthy during the wait,
// because the next step begins only after it.
const longestWait = 24 * time.Hour

// oddWaits warns of waits much shorter or longer than usual. The unit is then probably a typing
// error.
func (c *Config) oddWaits(p PolicyInfo) []Fault {
	var out []Fault
	for i, step := range p.Plan {
		usual := c.Core.Remediation(step.Name).Wait
		odd := ""
		switch {
		case step.Wait == 0:
		case step.Wait < usual/10:
			odd = "short: the next step would begin before this one can have worked"
		case step.Wait > longestWait:
			odd = "long: the node stays unhealthy in the meantime"
		}
		if odd != "" {
			out = append(out, p.source.locate(p.at.To("plan", i, "wait"), true,
				fmt.Sprintf("a wait of %s for step %s is very %s; the default is %s", text.Duration(step.Wait), step.Name, odd, text.Duration(usual))))
		}
	}
	return out
}

const preparesNothing = "it prepares the steps after it, and they cannot be carried out"

func (c *Config) idle(p PolicyInfo, capabilities map[string]string) []Fault {
	if p.Mode == remediations.ModeOff {
		return nil
	}
	var out []Fault
	why := c.skipped(p, capabilities)
	for i, missing := range why {
		if missing != "" {
			out = append(out, p.source.locate(p.at.To("plan", i), true,
				fmt.Sprintf("step %s of policy %s will be skipped: %s", p.Plan[i].Name, p.Name, missing)))
		}
	}
	if !slices.Contains(why, "") {
		out = append(out, p.source.locate(p.at.To("plan"), true,
			fmt.Sprintf("policy %s can do nothing: none of its steps can be carried out", p.Name)))
	}
	sortFaults(out)
	return out
}

// shippedIdle returns one sentence for each reason, because one for each step would hide the other
// warnings.
func (c *Config) shippedIdle(capabilities map[string]string) []string {
	lacks, unable := map[string][]string{}, []string(nil)
	for _, p := range c.shippedInUse() {
		why := c.skipped(p, capabilities)
		for i, missing := range why {
			lacks[missing] = append(lacks[missing], p.Plan[i].Name)
		}
		if !slices.Contains(why, "") {
			unable = append(unable, p.Name)
		}
	}
	delete(lacks, "")
	delete(lacks, preparesNothing) // these steps are skipped because of others, which are listed
	var out []string
	for _, missing := range slices.Sorted(maps.Keys(lacks)) {
		steps := lacks[missing]
		slices.Sort(steps)
		out = append(out, fmt.Sprintf("%s will be skipped in shipped policies: %s", strings.Join(slices.Compact(steps), " and "), missing))
	}
	if len(unable) > 0 {
		out = append(out, fmt.Sprintf("shipped policies can do nothing, none of their steps can be carried out: %s", strings.Join(unable, ", ")))
	}
	return out
}

// unasked reports whether the configuration lacks this kind of target: sidecars, a mesh, or hosts
// of a control plane.
func (c *Config) unasked(p PolicyInfo) bool {
	switch p.Kind {
	case remediations.KindSidecar:
		return c.Providers["sidecars"] == nil
	case remediations.KindLocation:
		return c.Providers["kilo"] == nil
	case remediations.KindAPIServer:
		return c.ControlPlane == nil
	case remediations.KindNode:
	}
	return false
}

func possible(steps []remediations.Step, capabilities map[string]string) bool {
	return slices.ContainsFunc(steps, func(s remediations.Step) bool {
		missing, known := capabilities[s.Name]
		return known && missing == ""
	})
}

// Enforces reports whether Drydock may repair anything. In the global mode enforce it may even
// without an enforcing policy, because people may then request repairs.
func (c *Config) Enforces() bool {
	for _, p := range c.Policies {
		if p.Mode == remediations.ModeEnforce {
			return true
		}
	}
	return c.Mode == remediations.ModeEnforce
}
