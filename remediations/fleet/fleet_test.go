package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestLimits(t *testing.T) {
	one := Quantity{Value: 1}
	for name, c := range map[string]struct {
		change func(*Config)
		flying int
		held   string
	}{
		"nothing under way":         {func(*Config) {}, 0, ""},
		"one of two":                {func(*Config) {}, 1, ""},
		"two of two":                {func(*Config) {}, 2, "limits.concurrent is 2"},
		"one in the zone":           {func(c *Config) { c.Limits.ConcurrentPerZone = one }, 1, "limits.concurrentPerZone is 1"},
		"one in the pool":           {func(c *Config) { c.Limits.ConcurrentPerPool = one }, 1, "limits.concurrentPerPool is 1"},
		"nothing is allowed":        {func(c *Config) { c.Limits.Concurrent = Quantity{} }, 0, "limits.concurrent is 0"},
		"ten percent of ten is one": {func(c *Config) { c.Limits.Concurrent = Quantity{Value: 10, Percent: true} }, 1, "limits.concurrent is 10%"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := scene.LimitsAlone()
			c.change(conf)
			nodes := scene.Herd(10, 0, "a")
			for i, n := range nodes {
				n.Labels["old-pool"] = "p"
				if i < c.flying {
					scene.InFlight(n, "reboot")
				}
			}
			why := scene.FleetOf(conf, nodes, nil, scene.Noon).AtLimit(conf, nodes[9], "", false)
			if c.held == "" {
				require.Empty(t, why)
			} else {
				require.Contains(t, why, c.held)
			}
		})
	}
}

// TestALimitNamesWhoHoldsIt names repairs in this order: a repair in flight, a drained node's
// repair that waits, a repair about to begin, a repair that observe mode would do. A node in
// another zone does not count in the zone's share.
func TestALimitNamesWhoHoldsIt(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent, conf.Limits.ConcurrentPerZone = Quantity{Value: 3}, Quantity{Value: 1}
	nodes := scene.Herd(4, 0, "a")
	nodes[0].Labels[conf.Limits.ZoneLabel] = "b"
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	require.Empty(t, f.AtLimit(conf, nodes[3], "", true), "the control")
	f.Occupy(conf, nodes[0], "", false)
	f.Next(conf, nodes[1], "", true)
	require.Equal(t, "repairs under way in zone a: 1 of at most 1 (n001, which observe mode would repair); limits.concurrentPerZone is 1", f.AtLimit(conf, nodes[3], "", true))
	f.Next(conf, nodes[1], "", false)
	require.Equal(t, "repairs under way in zone a: 1 of at most 1 (n001, whose repair is about to begin); limits.concurrentPerZone is 1", f.AtLimit(conf, nodes[3], "", false))
	conf.Limits.Concurrent = Quantity{Value: 2}
	f.Occupy(conf, nodes[2], "", false)
	require.Equal(t, "repairs under way in the cluster: 3 of at most 2 (n000); limits.concurrent is 2", f.AtLimit(conf, nodes[3], "", false))
	f.Vacate("n000")
	require.Equal(t, "repairs under way in the cluster: 2 of at most 2 (n002); limits.concurrent is 2", f.AtLimit(conf, nodes[3], "", false))
	f.Next(conf, nodes[2], "", false)
	require.Contains(t, f.AtLimit(conf, nodes[3], "", false), "(n002)", "a look at a repair under way takes nothing from it")
}

// TestLimitsCountTheHigherOfLedgerAndNodes checks the counts of invariant 3.
func TestLimitsCountTheHigherOfLedgerAndNodes(t *testing.T) {
	c := scene.LimitsAlone()
	nodes := scene.Herd(10, 0)
	scene.InFlight(nodes[0], "reboot")
	count := func(l *ledger.Ledger) int { return len(scene.FleetOf(c, nodes, l, scene.Noon).Occupied()) }
	require.Equal(t, 1, count(&ledger.Ledger{}), "the Node says so, the ledger does not")
	require.Equal(t, 1, count(&ledger.Ledger{Slots: []ledger.Slot{{Node: "n000"}}}), "both say so")
	require.Equal(t, 2, count(&ledger.Ledger{Slots: []ledger.Slot{{Node: "n001"}}}), "each knows of one")
	require.Equal(t, 2, count(&ledger.Ledger{Slots: []ledger.Slot{{Node: "of a Node that is gone"}}}))
	scene.InFlight(nodes[2], "mark-ready")
	require.Equal(t, 1, count(&ledger.Ledger{}), "what disrupts nobody takes no place")
	nodes[2].Annotations[NodeRepairKey] = "unreadable"
	require.Equal(t, 2, count(&ledger.Ledger{}), "unless nobody can read what it is")
}

func TestWouldBeRepairsCountInObserveModeOnly(t *testing.T) {
	c := scene.LimitsAlone()
	c.Limits.Concurrent = Quantity{Value: 1}
	nodes := scene.Herd(10, 0)
	r := Record{V: 1, ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1},
		Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon, Hold: &Hold{Reason: ReasonObserving, Message: "would", Since: scene.Noon}}
	nodes[0].Annotations[NodeRepairKey], nodes[0].Labels[PhaseLabel] = r.Encode(), string(PhasePending)
	f := scene.FleetOf(c, nodes, nil, scene.Noon)
	require.NotEmpty(t, f.AtLimit(c, nodes[1], "", true))
	require.Empty(t, f.AtLimit(c, nodes[1], "", false))
	require.Empty(t, f.AtLimit(c, nodes[0], "", true), "a repair does not hold itself")
	require.NotEmpty(t, scene.FleetOf(c, nodes, nil, scene.Noon.Add(599*time.Second)).AtLimit(c, nodes[1], "", true))
	require.Empty(t, scene.FleetOf(c, nodes, nil, scene.Noon.Add(600*time.Second)).AtLimit(c, nodes[1], "", true), "when the step's wait is over its place is free")

	f = scene.FleetOf(c, nodes, &ledger.Ledger{Slots: []ledger.Slot{{Node: "n000"}}}, scene.Noon)
	require.NotEmpty(t, f.AtLimit(c, nodes[1], "", false), "a slot in the ledger is real, whatever the Node still says")

	f.Occupy(c, nodes[0], "", true)
	require.NotEmpty(t, f.AtLimit(c, nodes[1], "", false), "and observe mode does not talk it away")
	f.Vacate("n000")
	require.Empty(t, f.AtLimit(c, nodes[1], "", false))

	f.Occupy(c, nodes[0], "", true)
	require.NotEmpty(t, f.AtLimit(c, nodes[1], "", true), "one that this pass would have begun")
	require.Empty(t, f.AtLimit(c, nodes[1], "", false))
	f.Occupy(c, nodes[0], "", false)
	require.NotEmpty(t, f.AtLimit(c, nodes[1], "", false), "one that this pass began")
}

func TestControlPlaneKeepsItsQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		count, down int
		held        bool
	}{
		"the only one":                    {1, 1, true},
		"one of two":                      {2, 1, true},
		"one of three":                    {3, 1, false},
		"one of three, another down":      {3, 2, true},
		"one of five, another down":       {5, 2, false},
		"one of five, two others down":    {5, 3, true},
		"one of three that is Ready":      {3, 0, false},
		"one of four: three must be left": {4, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.ControlPlane(scene.Herd(10, c.down), c.count)
			f := scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon)
			require.Equal(t, c.held, f.ControlPlaneBusy(nodes[0]) != "")
			require.Empty(t, f.ControlPlaneBusy(nodes[9]), "a worker is no matter of the control plane")
		})
	}
	nodes := scene.ControlPlane(scene.Herd(10, 1), 3)
	f := scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon)
	require.NotEmpty(t, f.ControlPlaneBusy(nodes[2]), "a node that is Ready does not count as one that would be left")
}

// TestNodesOfEtcdAloneKeepItsQuorum: control-plane nodes without an etcd member do not help the
// nodes with one.
func TestNodesOfEtcdAloneKeepItsQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		down, etcd, plane int
		held              bool
	}{
		"one of three":                                     {1, 3, 0, false},
		"one of three, another down":                       {2, 3, 0, true},
		"one of three, three other control-plane nodes":    {1, 3, 3, false},
		"two of three are down, three of the plane Ready":  {2, 3, 3, true},
		"one of three, one other control-plane node alone": {1, 3, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.Herd(10, c.down)
			for _, n := range nodes[:c.etcd] {
				n.Labels["node-role.kubernetes.io/etcd"] = ""
			}
			scene.ControlPlane(nodes[c.etcd:], c.plane)
			f := scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon)
			require.Equal(t, c.held, f.ControlPlaneBusy(nodes[0]) != "", f.ControlPlaneBusy(nodes[0]))
			require.Empty(t, f.ControlPlaneBusy(nodes[9]), "a worker is no matter of the control plane")
			f.Occupy(scene.LimitsAlone(), nodes[1], "", false)
			require.NotEmpty(t, f.ControlPlaneBusy(nodes[0]), "another node of etcd is under repair")
		})
	}
}

func TestControlPlaneNodesAreRepairedOneAtATime(t *testing.T) {
	nodes := scene.ControlPlane(scene.Herd(10, 0), 5)
	f := scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon)
	require.Empty(t, f.ControlPlaneBusy(nodes[0]), "the control")
	f.Occupy(scene.LimitsAlone(), nodes[1], "", false)
	require.NotEmpty(t, f.ControlPlaneBusy(nodes[0]), "one that this pass began")

	f = scene.FleetOf(scene.LimitsAlone(), nodes, &ledger.Ledger{Slots: []ledger.Slot{{Node: "n001"}}}, scene.Noon)
	require.NotEmpty(t, f.ControlPlaneBusy(nodes[0]), "one whose slot is taken while the cache is behind")

	scene.InFlight(nodes[1], "reboot")
	require.NotEmpty(t, scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon).ControlPlaneBusy(nodes[0]), "one on record")

	f = scene.FleetOf(scene.LimitsAlone(), scene.ControlPlane(scene.Herd(10, 0), 5), nil, scene.Noon)
	f.Occupy(scene.LimitsAlone(), nodes[0], "", false)
	require.Empty(t, f.ControlPlaneBusy(nodes[0]), "its own repair")
	f.Occupy(scene.LimitsAlone(), nodes[9], "", false)
	require.Empty(t, f.ControlPlaneBusy(nodes[0]), "the repair of a worker")
	f.Occupy(scene.LimitsAlone(), nodes[1], "", true)
	require.Empty(t, f.ControlPlaneBusy(nodes[0]), "one that would be in observe mode")
}

// TestFleetNeverExceedsALimit: in any fleet, repairs that begin while AtLimit allows it exceed no
// limit.
func TestFleetNeverExceedsALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.Custom(func(t *rapid.T) Quantity {
			return Quantity{Value: rapid.IntRange(0, 40).Draw(t, "value"), Percent: rapid.Bool().Draw(t, "percent")}
		})
		c := scene.LimitsAlone()
		c.Limits.Concurrent, c.Limits.ConcurrentPerZone, c.Limits.ConcurrentPerPool = q.Draw(t, "all"), q.Draw(t, "zone"), q.Draw(t, "pool")
		nodes := scene.Herd(rapid.IntRange(1, 40).Draw(t, "nodes"), 0)
		zones, pools := map[string]int{}, map[string]int{}
		for _, n := range nodes {
			n.Labels["zone"] = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "z")
			n.Labels["pool"] = rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "p")
			zones[c.Zone(n)]++
			pools[c.Pool(n)]++
		}
		f := scene.FleetOf(c, nodes, nil, scene.Noon)
		inAll, inZone, inPool := 0, map[string]int{}, map[string]int{}
		for _, n := range nodes {
			if f.AtLimit(c, n, "", false) == "" {
				f.Occupy(c, n, "", false)
				inAll++
				inZone[c.Zone(n)]++
				inPool[c.Pool(n)]++
			}
		}
		require.LessOrEqual(t, inAll, c.Limits.Concurrent.Of(len(nodes)))
		for z, n := range inZone {
			require.True(t, z == "" || n <= c.Limits.ConcurrentPerZone.Of(zones[z]))
		}
		for p, n := range inPool {
			require.True(t, p == "" || n <= c.Limits.ConcurrentPerPool.Of(pools[p]))
		}
	})
}

// TestRelabelledNodeCountsWhereItsRepairBegan: it counts in that zone and pool, according to the
// ledger, and also in its present ones.
func TestRelabelledNodeCountsWhereItsRepairBegan(t *testing.T) {
	one := Quantity{Value: 1}
	for name, c := range map[string]struct {
		relabel func(n *corev1.Node)
		held    bool
	}{
		"it stays":              {func(*corev1.Node) {}, true},
		"another zone and pool": {func(n *corev1.Node) { n.Labels["zone"], n.Labels["pool"] = "b", "q" }, true},
		"no zone and no pool":   {func(n *corev1.Node) { delete(n.Labels, "zone"); delete(n.Labels, "pool") }, true},
		"its repair is over":    {func(n *corev1.Node) { delete(n.Annotations, NodeRepairKey); delete(n.Labels, PhaseLabel) }, false},
	} {
		for what, limit := range map[string]func(*Config){
			"the zone's limit":          func(c *Config) { c.Limits.ConcurrentPerZone = one },
			"the pool's limit":          func(c *Config) { c.Limits.ConcurrentPerPool = one },
			"the control plane's limit": func(*Config) {},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				conf := scene.LimitsAlone()
				conf.Limits.Concurrent = Quantity{Value: 9}
				limit(conf)
				nodes := scene.Herd(10, 0, "a")
				for _, n := range nodes {
					n.Labels["pool"] = "p"
					if what == "the control plane's limit" {
						n.Labels["node-role.kubernetes.io/control-plane"] = ""
					}
				}
				scene.InFlight(nodes[0], "reboot")
				l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
				l.Reserve(conf, nodes[0], ReadJournal(nodes[0]).Record, scene.Noon)
				c.relabel(nodes[0])
				if name != "it stays" {
					delete(nodes[0].Labels, "node-role.kubernetes.io/control-plane")
				}
				if !c.held {
					l.Slots = nil
				}
				f := scene.FleetOf(conf, nodes, l, scene.Noon)
				require.Equal(t, c.held, f.AtLimit(conf, nodes[1], "", false)+f.ControlPlaneBusy(nodes[1]) != "")
			})
		}
	}
	conf := scene.LimitsAlone()
	nodes := scene.Herd(10, 0, "a", "b")
	scene.InFlight(nodes[0], "reboot")
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	l.Reserve(conf, nodes[0], ReadJournal(nodes[0]).Record, scene.Noon)
	nodes[0].Labels["zone"] = "b"
	f := scene.FleetOf(conf, nodes, l, scene.Noon)
	require.NotEmpty(t, f.Busy("zone/a", "n001"), "a half-open breaker of the zone that it left")
	require.NotEmpty(t, f.Busy("zone/b", "n001"))
}
