package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestBothHalfOpenBreakersAreAsked: if the breakers of the cluster and of a zone are half-open, the
// first repair that one allows may still be held by the other.
func TestBothHalfOpenBreakersAreAsked(t *testing.T) {
	for name, c := range map[string]struct {
		cluster, zone string
		held          bool
	}{
		"both let it through":                {"r1", "r1", false},
		"nobody is tried yet":                {"", "", false},
		"another is the zone's trial":        {"r1", "r2", true},
		"another is the cluster's trial":     {"r2", "r1", true},
		"another, and none of the cluster's": {"", "r2", true},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.Herd(30, 1, "a", "b")
			scene.InFlight(nodes[2], "reboot")
			l := &ledger.Ledger{Slots: []ledger.Slot{{Node: "n004", Repair: "r2", Zone: "a"}, {Node: "n000", Repair: "r1", Zone: "a"}}}
			if c.cluster == "" {
				l.Slots, nodes = nil, scene.Herd(30, 1, "a", "b")
			}
			half := func(trial string) ledger.Breaker {
				return ledger.Breaker{State: ledger.BreakerHalfOpen, Since: scene.Noon, Quiet: scene.Noon, Trial: trial}
			}
			conf := scene.LimitsAlone()
			f := scene.FleetOf(conf, nodes, l, scene.Noon)
			f.Breakers = map[string]ledger.Breaker{ledger.ScopeCluster: half(c.cluster), "zone/a": half(c.zone)}
			asked := &lifecycle.Candidate{State: &lifecycle.State{Config: conf, Node: nodes[0], Fleet: f}, Now: scene.Noon, Policy: &Policy{}, Step: StepRef{Name: "reboot", Attempt: 1}, Own: "r1"}
			require.Equal(t, c.held, lifecycle.GuardFleetUnhealthy(asked) != nil)
		})
	}
}

// TestWhichRepairsWaitForThatOfACommonFault: one of four nodes with the same fault is repaired
// first, and the repairs of the others wait. A repair that has issued a step continues, and a
// person's request is not about that alert.
func TestWhichRepairsWaitForThatOfACommonFault(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *lifecycle.Candidate)
		held   bool
	}{
		"another node":              {func(*lifecycle.Candidate) {}, true},
		"it has issued a step":      {func(c *lifecycle.Candidate) { c.Repair = "r1" }, false},
		"a person requested it":     {func(c *lifecycle.Candidate) { c.Alert = nil }, false},
		"the node repaired first":   {func(c *lifecycle.Candidate) { c.Node = scene.Bare("n4") }, false},
		"a node without that fault": {func(c *lifecycle.Candidate) { c.Node = scene.Bare("n9") }, false},
	} {
		s := scene.Read(t, []byte(`{policy: {witness: DiskPressure=True}, fleet: {common: 3, tried: Verifying}}`)).State(t)
		asked := &lifecycle.Candidate{State: s, Now: scene.Noon, Policy: s.Config.Policies[0], Step: StepRef{Name: "reboot", Attempt: 1}, Alert: &s.Journal.Alerts[0]}
		c.change(asked)
		_, f := asked.HeldBy([]Reason{ReasonCommonCause})
		require.Equal(t, c.held, f != nil, name)
	}
}
