package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestShareOfAZoneAndOfAPool: a percentage counts all nodes of the zone or the pool.
func TestShareOfAZoneAndOfAPool(t *testing.T) {
	share := Quantity{Value: 20, Percent: true}
	for name, limit := range map[string]func(*Config){
		"zone": func(c *Config) { c.Limits.ConcurrentPerZone = share },
		"pool": func(c *Config) { c.Limits.ConcurrentPerPool = share },
	} {
		conf := scene.LimitsAlone()
		conf.Limits.Concurrent = Quantity{Value: 9}
		limit(conf)
		nodes := scene.Herd(10, 0, "a")
		for _, n := range nodes {
			n.Labels["pool"] = "p"
		}
		scene.InFlight(nodes[0], "reboot")
		require.Empty(t, scene.FleetOf(conf, nodes, nil, scene.Noon).AtLimit(conf, nodes[9], "", false), "one of two in the %s", name)
		scene.InFlight(nodes[1], "reboot")
		require.NotEmpty(t, scene.FleetOf(conf, nodes, nil, scene.Noon).AtLimit(conf, nodes[9], "", false), "two of two in the %s", name)
	}
}

// TestRecordThatIsOverdueTakesNoPlace: without a slot in the ledger, a record counts for as long as
// its step may take.
func TestRecordThatIsOverdueTakesNoPlace(t *testing.T) {
	nodes := scene.Herd(10, 0)
	scene.InFlight(nodes[0], "reboot")
	until := ReadJournal(nodes[0]).Record.Deadline.Add(OverdueFor)
	require.Len(t, scene.FleetOf(scene.LimitsAlone(), nodes, nil, until.Add(-time.Second)).Occupied(), 1)
	require.Empty(t, scene.FleetOf(scene.LimitsAlone(), nodes, nil, until).Occupied())
}

func TestEachRoleOfTheControlPlaneCounts(t *testing.T) {
	for label, want := range map[string]bool{
		"node-role.kubernetes.io/control-plane": true, "node-role.kubernetes.io/master": true,
		"node-role.kubernetes.io/controlplane": true, "node-role.kubernetes.io/etcd": true,
		"node-role.kubernetes.io/worker": false,
	} {
		n := scene.Bare("n1")
		n.Labels[label] = ""
		require.Equal(t, want, ControlPlane(n), label)
	}
}

func TestReadyConditionIsFoundBehindOthers(t *testing.T) {
	n := scene.Bare("n1")
	n.Status.Conditions = append([]corev1.NodeCondition{{Type: corev1.NodeDiskPressure}}, n.Status.Conditions...)
	require.Equal(t, &n.Status.Conditions[1], ReadyCondition(n))
	n.Status.Conditions = n.Status.Conditions[:1]
	require.Nil(t, ReadyCondition(n))
}

// TestLimitsOfAZoneAndAPoolCountNoOther: repairs elsewhere do not count.
func TestLimitsOfAZoneAndAPoolCountNoOther(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 9}
	conf.Limits.ConcurrentPerZone, conf.Limits.ConcurrentPerPool = Quantity{Value: 1}, Quantity{Value: 1}
	nodes := scene.Herd(10, 0, "a", "b")
	for i, n := range nodes {
		n.Labels["pool"] = []string{"p", "q"}[i%2]
	}
	scene.InFlight(nodes[0], "reboot")
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	require.Empty(t, f.AtLimit(conf, nodes[1], "", false), "another zone and pool")
	nodes[1].Labels["zone"] = "a"
	require.Contains(t, f.AtLimit(conf, nodes[1], "", false), "zone a")
	nodes[1].Labels["zone"], nodes[1].Labels["pool"] = "b", "p"
	require.Contains(t, f.AtLimit(conf, nodes[1], "", false), "pool p")
	delete(nodes[1].Labels, "zone")
	delete(nodes[1].Labels, "pool")
	require.Empty(t, f.AtLimit(conf, nodes[1], "", false), "a node without zone and pool")
}

func TestLimitNamesTheFirstOfTheNodesUnderRepair(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 9}
	nodes := scene.Herd(10, 0)
	for _, n := range nodes[:9] {
		scene.InFlight(n, "reboot")
	}
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	for range 20 { // a map has no order
		require.Contains(t, f.AtLimit(conf, nodes[9], "", false), "(n000)")
	}
}
