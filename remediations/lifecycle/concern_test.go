package lifecycle_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAHoldThatNamesAPolicyConcernsIt: the plugin shows the ledger's one hold for a reason with the
// policy that it concerns. The message is for people alone.
func TestAHoldThatNamesAPolicyConcernsIt(t *testing.T) {
	names := regexp.MustCompile(`^policy (\S+) (?:has no witness|is stopped)|^no step of policy (\S+) can be carried out|^repair .* by policy (\S+) changes`)
	reasons := map[Reason]bool{}
	for _, g := range scene.GoldensIn(t, "../../targets/node/testdata/decide") {
		d := node.Decide(g.State(t), scene.Noon)
		if d.Verb != lifecycle.VerbHold || !d.Fleetwide {
			continue
		}
		want := ""
		if named := names.FindStringSubmatch(d.Message); named != nil {
			want = named[1] + named[2] + named[3]
			reasons[d.Reason] = true
		}
		require.Equal(t, want, d.Concern.Policy, "%s: %s", g.Name, d.Message)
	}
	require.Equal(t, map[Reason]bool{ReasonPolicyFailing: true, ReasonNotWitnessed: true, ReasonProviderAbsent: true, ReasonClusterWide: true}, reasons)
}

// TestAHoldOfAZoneOrAPoolConcernsIt alone, and a hold of the cluster concerns every node.
func TestAHoldOfAZoneOrAPoolConcernsIt(t *testing.T) {
	one, open := Quantity{Value: 1}, map[string]ledger.Breaker{"zone/a": {State: ledger.BreakerOpen, Quiet: scene.Noon}}
	for name, c := range map[string]struct {
		limits   func(*Limits)
		breakers map[string]ledger.Breaker
		want     Concern
	}{
		"the limit of the cluster": {limits: func(l *Limits) { l.Concurrent = one }},
		"the limit of the zone":    {limits: func(l *Limits) { l.ConcurrentPerZone = one }, want: Concern{Zone: "a"}},
		"the limit of the pool":    {limits: func(l *Limits) { l.ConcurrentPerPool = one }, want: Concern{Pool: "p"}},
		"the cluster's breaker":    {breakers: map[string]ledger.Breaker{ledger.ScopeCluster: open["zone/a"], "zone/a": open["zone/a"]}},
		"the zone's breaker":       {breakers: open, want: Concern{Zone: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := scene.LimitsAlone()
			conf.Limits.PoolLabels = []string{"example.com/pool"}
			if c.limits != nil {
				c.limits(&conf.Limits)
			}
			nodes := scene.Herd(10, 0, "a")
			for _, n := range nodes {
				n.Labels["example.com/pool"] = "p"
			}
			scene.InFlight(nodes[1], "reboot")
			f := scene.FleetOf(conf, nodes, nil, scene.Noon)
			f.Breakers = c.breakers
			asked := &lifecycle.Candidate{State: &lifecycle.State{Config: conf, Node: nodes[0], Fleet: f}, Now: scene.Noon, Policy: &Policy{}, Step: StepRef{Name: "reboot", Attempt: 1}}
			reason, held := asked.HeldBy([]Reason{ReasonFleetUnhealthy, ReasonAtLimit})
			require.NotNil(t, held)
			require.Equal(t, c.want, lifecycle.Held(asked, reason, held).Concern, held.Message)
		})
	}
}
