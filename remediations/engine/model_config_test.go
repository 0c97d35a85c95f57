package engine

import (
	"slices"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

var modelKinds = []*remediations.TargetKind{&location.Kind, &sidecar.Kind}

// modelRegistry has the remediations that Drydock ships, and one foreign remediation.
var modelRegistry = remediations.Registry{polish.Name: polish}

// modelConfig is one policy that reboots twice, on a fleet that repairs one node at a time.
func modelConfig() *remediations.Config {
	match, err := labels.NewMatcher(labels.MatchEqual, "remediation", "node-not-ready")
	if err != nil {
		panic(err)
	}
	return &remediations.Config{
		Kinds: modelKinds, Registry: modelRegistry,
		Policies: []*remediations.Policy{{
			Name: "node-not-ready", Match: labels.Matchers{match}, Labels: []string{"node"}, Mode: remediations.ModeEnforce,
			Plan: []remediations.Step{{Name: "reboot", Wait: 10 * time.Minute, Attempts: 2}},
			Witness: &signs.Witness{Signs: []signs.Sign{
				{Kind: signs.NotReady}, {Kind: signs.Condition, Name: conditionBroken, Status: "True"},
			}},
			ProofFor: 30 * time.Second, Cooldown: 5 * time.Minute, CordonExhausted: true,
		}},
		Limits: remediations.Limits{
			Concurrent: remediations.Quantity{Value: 1}, ConcurrentPerZone: remediations.Quantity{Value: 9}, ConcurrentPerPool: remediations.Quantity{Value: 9},
			ZoneLabel: "zone", PoolLabels: []string{"pool"}, Unhealthy: remediations.Quantity{Value: 60, Percent: true},
			RepairsPerNode: 3, RepairsWindow: 24 * time.Hour, StormCooldown: 2 * time.Minute, StartupGrace: time.Minute,
		},
		ClusterWide:  remediations.ClusterWide{MinNodes: 2, MinShare: remediations.Quantity{Value: 30, Percent: true}},
		MaxStaleness: 30 * time.Second, Watchdog: true, Receiver: "drydock", Provided: map[string]bool{"reboot": true},
	}
}

// wholeConfig reboots once, then empties the node and replaces its machine.
func wholeConfig() *remediations.Config {
	c := modelConfig()
	c.Policies[0].Plan = []remediations.Step{
		{Name: "reboot", Wait: 5 * time.Minute, Attempts: 1}, {Name: "drain", Timeout: 10 * time.Minute, Attempts: 1},
		{Name: "replace", Wait: 15 * time.Minute, Attempts: 1},
	}
	c.Provided["drain"], c.Provided["replace"] = true, true
	return c
}

// kubeletDown is a milder policy: its plan begins with a restart of the kubelet, which has no
// proof.
func kubeletDown(c *remediations.Config) *remediations.Policy {
	match, err := labels.NewMatcher(labels.MatchEqual, "remediation", "kubelet-down")
	if err != nil {
		panic(err)
	}
	p := *c.Policies[0]
	p.Name, p.Match = "kubelet-down", labels.Matchers{match}
	p.Plan = []remediations.Step{{Name: "restart-kubelet", Wait: 3 * time.Minute, Attempts: 1}, {Name: "drain", Timeout: time.Minute, Attempts: 1}, {Name: "reboot", Wait: 10 * time.Minute, Attempts: 1}}
	return &p
}

// anyConfig returns any configuration that an operator might write.
func anyConfig(t *rapid.T) *remediations.Config {
	c := modelConfig()
	p := c.Policies[0]
	p.For = rapid.SampledFrom([]time.Duration{0, 2 * time.Minute}).Draw(t, "for")
	p.Mode = rapid.SampledFrom([]remediations.Mode{remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeObserve}).Draw(t, "mode")
	p.RelapseWindow = rapid.SampledFrom([]time.Duration{0, 10 * time.Minute, time.Hour}).Draw(t, "relapse window")
	p.EndWhenWell = rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Minute}).Draw(t, "end when well")
	p.Approval = rapid.IntRange(0, 4).Draw(t, "approval") == 0
	if rapid.Bool().Draw(t, "several steps") {
		p.Plan = append([]remediations.Step{{Name: "restart-kubelet", Wait: 2 * time.Minute, Attempts: 1}}, p.Plan...)
	}
	if first := rapid.SampledFrom(append([]string{"", "", ""}, askingSteps...)).Draw(t, "asks first"); first != "" {
		p.Plan = append([]remediations.Step{{Name: first, Wait: 2 * time.Minute, Attempts: 1}}, p.Plan...)
		c.Provided[first] = true
	}
	if rapid.IntRange(0, 3).Draw(t, "repeats a step") == 0 { // as [reboot, restart-kubelet, reboot]
		p.Plan[len(p.Plan)-1].Attempts = 1
		p.Plan = append(p.Plan, remediations.Step{Name: "restart-kubelet", Wait: 2 * time.Minute, Attempts: 1}, p.Plan[len(p.Plan)-1])
	}
	if rapid.IntRange(0, 2).Draw(t, "replaces") > 0 {
		c.Provided["drain"], c.Provided["replace"] = true, rapid.IntRange(0, 5).Draw(t, "replace is provided") > 0
		p.Plan[len(p.Plan)-1].Attempts = 1
		p.Plan = append(p.Plan, remediations.Step{
			Name: "drain", Timeout: rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute}).Draw(t, "drain for"), Attempts: 1,
			ContinueOnTimeout: rapid.Bool().Draw(t, "onTimeout: continue"),
		}, remediations.Step{Name: "replace", Wait: 8 * time.Minute, Attempts: 1})
		if rapid.IntRange(0, 2).Draw(t, "no machine is promised") == 0 {
			c.Providers = []remediations.Provider{{Name: "cloud", Steps: []string{"replace"}, PromisesNone: true}}
		}
		if rapid.IntRange(0, 3).Draw(t, "drains first") == 0 {
			p.Plan = p.Plan[len(p.Plan)-2:]
		}
	}
	if rapid.Bool().Draw(t, "onUnreachable: continue") {
		for i := range p.Plan {
			p.Plan[i].ContinueUnreachable = true
		}
	}
	c.Provided["restart-kubelet"] = true
	if rapid.Bool().Draw(t, "a second policy") {
		c.Policies = append(c.Policies, kubeletDown(c))
	}
	if rapid.Bool().Draw(t, "conditions must be confirmed") {
		doubts(c)
	}
	c.Announce = rapid.SampledFrom([][]string{nil, {noScaleDown}, announcements}).Draw(t, "announce")
	c.Conditions = rapid.Bool().Draw(t, "announce conditions")
	c.RequireAll = rapid.IntRange(0, 3).Draw(t, "require all") == 0
	c.Limits.Concurrent = rapid.SampledFrom([]remediations.Quantity{{Value: 1}, {Value: 2}, {Value: 3}, {Value: 40, Percent: true}}).Draw(t, "concurrent")
	c.Limits.ConcurrentPerZone = rapid.SampledFrom([]remediations.Quantity{{Value: 1}, {Value: 9}, {Value: 50, Percent: true}}).Draw(t, "per zone")
	c.Limits.ConcurrentPerPool = rapid.SampledFrom([]remediations.Quantity{{Value: 1}, {Value: 9}, {Value: 34, Percent: true}}).Draw(t, "per pool")
	if rapid.IntRange(0, 2).Draw(t, "switches off") == 0 {
		c.Provided["powerOff"] = true
		off := remediations.Step{Name: "powerOff", Wait: 3 * time.Minute, Attempts: rapid.IntRange(1, 2).Draw(t, "attempts")}
		if rapid.Bool().Draw(t, "in the middle") { // as [reboot, powerOff, reboot], or before a replacement
			p.Plan = slices.Insert(slices.Clone(p.Plan), 1, off)
			p.Plan[0].Attempts = 1
		} else {
			p.Plan = append(p.Plan, off)
		}
	}
	return c
}

// otherConfig is a configuration that a restart may bring: a policy renamed, removed, with a
// shorter plan, or only observing.
func otherConfig(t *rapid.T, old *remediations.Config) *remediations.Config {
	c, p := *old, *old.Policies[0]
	c.Policies = append([]*remediations.Policy{&p}, old.Policies[1:]...)
	switch rapid.SampledFrom([]string{"renamed", "removed", "shorter", "observe", "off", "as it was"}).Draw(t, "the policy") {
	case "renamed":
		p.Name = "another-name"
	case "removed":
		c.Policies = c.Policies[1:]
	case "shorter":
		p.Plan = []remediations.Step{p.Plan[len(p.Plan)-1]}
		p.Plan[0].Attempts = 1
	case "observe":
		p.Mode = remediations.ModeObserve
	case "off":
		p.Mode = remediations.ModeOff
	default:
		return old
	}
	return &c
}
