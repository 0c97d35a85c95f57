package fleet_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestZoneHasABreakerOnlyBesideAnotherZone: in a cluster with one zone, the cluster's breaker
// counts the same nodes.
func TestZoneHasABreakerOnlyBesideAnotherZone(t *testing.T) {
	scopes := func(zones ...string) []string {
		f := scene.FleetOf(scene.LimitsAlone(), scene.Herd(30, 30, zones...), nil, scene.Noon)
		return slices.Sorted(maps.Keys(f.Breakers))
	}
	require.Equal(t, []string{ledger.ScopeCluster}, scopes("a"))
	require.Equal(t, []string{ledger.ScopeCluster}, scopes("a", ""), "nodes without a zone are none")
	require.Equal(t, []string{ledger.ScopeCluster, "zone/a", "zone/b"}, scopes("a", "b"), "the control")
}

// TestBreakerOfAZoneCountsTheZoneAgainEachTime: only the zone's nodes count for its open breaker.
func TestBreakerOfAZoneCountsTheZoneAgainEachTime(t *testing.T) {
	for name, c := range map[string]struct {
		down  bool
		state ledger.BreakerState
		quiet time.Time
	}{
		"the zone is still down": {true, ledger.BreakerOpen, scene.Noon.Add(time.Minute)},
		"the zone is well":       {false, ledger.BreakerOpen, scene.Noon},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.Herd(30, 0, "a", "b")
			for i := 0; i < 12 && c.down; i += 2 {
				scene.Unready(nodes[i])
			}
			l := &ledger.Ledger{Status: ledger.Status{Breakers: map[string]ledger.Breaker{"zone/a": {State: ledger.BreakerOpen, Since: scene.Noon, Quiet: scene.Noon, Seen: scene.Noon}}}}
			f := scene.FleetOf(scene.LimitsAlone(), nodes, l, scene.Noon.Add(time.Minute))
			require.Equal(t, []string{"zone/a"}, slices.Collect(maps.Keys(f.Breakers)))
			b := f.Breakers["zone/a"]
			require.Equal(t, c.state, b.State)
			require.Equal(t, c.quiet, b.Quiet)
			require.Equal(t, 15, b.Nodes)
		})
	}
}

func TestTwoMinutesBetweenTwoPassesCountAsSeen(t *testing.T) {
	quiet := func(gap time.Duration) time.Time {
		l := &ledger.Ledger{Status: ledger.Status{Breakers: map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerOpen, Since: scene.Noon, Quiet: scene.Noon, Seen: scene.Noon}}}}
		return scene.FleetOf(scene.LimitsAlone(), scene.Herd(10, 0), l, scene.Noon.Add(gap)).Breakers[ledger.ScopeCluster].Quiet
	}
	require.Equal(t, scene.Noon, quiet(fleet.SeenFor))
	require.Equal(t, scene.Noon.Add(fleet.SeenFor+time.Second), quiet(fleet.SeenFor+time.Second), "a longer gap is no calm")
}

func TestOnlyAHalfOpenBreakerTakesATrial(t *testing.T) {
	f := &fleet.Fleet{Breakers: map[string]ledger.Breaker{
		ledger.ScopeCluster: {State: ledger.BreakerOpen}, "zone/a": {State: ledger.BreakerHalfOpen}, "zone/b": {State: ledger.BreakerHalfOpen, Trial: "r2"},
	}}
	f.Try("a", "n1", "r1")
	require.Empty(t, f.Breakers[ledger.ScopeCluster].Trial)
	require.Equal(t, "r1", f.Breakers["zone/a"].Trial)
	require.Equal(t, []string{"zone/a"}, f.Trials("r1"))
	require.Equal(t, []string{"zone/b"}, f.Trials("r2"))
	require.Empty(t, f.Trials("r3"))

	f.Breakers[ledger.ScopeCluster] = ledger.Breaker{State: ledger.BreakerOpen, Trial: "r1"}
	require.Equal(t, []string{"zone/a"}, f.Trials("r1"), "an open breaker waits for no trial")
}

// TestReopenOpensWhatIsNotOpen: an open breaker keeps its time.
func TestReopenOpensWhatIsNotOpen(t *testing.T) {
	open := ledger.Breaker{State: ledger.BreakerOpen, Since: scene.Noon, Quiet: scene.Noon, Seen: scene.Noon}
	f := &fleet.Fleet{Breakers: map[string]ledger.Breaker{ledger.ScopeCluster: open, "zone/a": {State: ledger.BreakerHalfOpen, Since: scene.Noon}}}
	later := scene.Noon.Add(time.Hour)
	f.Reopen([]string{ledger.ScopeCluster, "zone/a", "zone/b"}, later)
	require.Equal(t, map[string]ledger.Breaker{ledger.ScopeCluster: open, "zone/a": fleet.Opened(later), "zone/b": fleet.Opened(later)}, f.Breakers)
}
