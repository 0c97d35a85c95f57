package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// ofOneProvider returns a fleet of civo with one machine of a BMC. Only one repair at a time may
// use civo.
func ofOneProvider() (*Config, []*corev1.Node) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 9}
	conf.Policies = []*Policy{{Name: "another-policy", Mode: ModeEnforce, Plan: []Step{{Name: "drain"}, {Name: "reboot"}, {Name: "replace"}}}}
	civo, bmc := scene.Serving("civo", "civo://", ""), scene.Serving("bmc", "bmc://", "")
	civo.Steps, civo.Concurrent = []string{"reboot", "replace"}, 1
	conf.Providers = []Provider{civo, bmc}
	nodes := scene.Herd(10, 0)
	nodes[8].Spec.ProviderID = "bmc://8"
	return conf, nodes
}

// TestAProviderHasALimitOfItsOwn: a repair counts from the drain before the provider's step until
// its proof. It counts by its record, by its slot alone, and by the ledger when its Node is gone.
func TestAProviderHasALimitOfItsOwn(t *testing.T) {
	slot := func(index string) *ledger.Ledger {
		return &ledger.Ledger{Slots: []ledger.Slot{{Node: "n000", Policy: "another-policy", Repair: "r1", Attempt: "r1-" + index + "-1", ProviderID: "civo://n000"}}}
	}
	gone := slot("2")
	gone.Orphans = []ledger.Orphan{{Node: "n000", Record: Record{ID: "r1", Policy: "another-policy", Step: StepRef{Index: 2, Name: "replace", Attempt: 1}, Intent: &Intent{ID: "r1-2-1", Provider: "civo"}}}}
	for name, c := range map[string]struct {
		change func(conf *Config, nodes []*corev1.Node) []*corev1.Node
		ledger *ledger.Ledger
		held   bool
	}{
		"a reboot by its record":             {func(_ *Config, n []*corev1.Node) []*corev1.Node { scene.InFlight(n[0], "reboot"); return n }, nil, true},
		"a drain before a reboot":            {func(_ *Config, n []*corev1.Node) []*corev1.Node { scene.InFlight(n[0], "drain"); return n }, nil, true},
		"a slot whose intent is not written": {func(_ *Config, n []*corev1.Node) []*corev1.Node { return n }, slot("1"), true},
		"a replacement whose Node is gone":   {func(_ *Config, n []*corev1.Node) []*corev1.Node { return n[1:] }, gone, true},
		"control: another provider's":        {func(_ *Config, n []*corev1.Node) []*corev1.Node { scene.InFlight(n[8], "reboot"); return n }, nil, false},
		"control: no limit": {func(c *Config, n []*corev1.Node) []*corev1.Node {
			c.Providers[0].Concurrent = 0
			scene.InFlight(n[0], "reboot")
			return n
		}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			conf, nodes := ofOneProvider()
			nodes = c.change(conf, nodes)
			f := scene.FleetOf(conf, nodes, c.ledger, scene.Noon)
			n := nodes[len(nodes)-1]
			why := f.AtLimit(conf, n, conf.ProviderAhead(conf.Policies[0], 0, n), false)
			if !c.held {
				require.Empty(t, why)
				return
			}
			require.Equal(t, "repairs under way by provider civo: 1 of at most 1 (n000); providers.civo.concurrent is 1", why)
			require.Empty(t, f.AtLimit(conf, f.Node("n008"), conf.ProviderAhead(conf.Policies[0], 0, f.Node("n008")), false), "the BMC is another provider")
		})
	}
}
