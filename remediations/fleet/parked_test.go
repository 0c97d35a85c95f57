package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// park makes the node a parked one: Drydock has drained it, and the next step is held.
func park(n *corev1.Node, change func(*Record)) {
	r := Record{V: 1, ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhasePending, Step: StepRef{Index: 1, Name: "replace", Attempt: 1},
		Done: Attempts{{Name: "drain", Number: 1}}, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(PendingFor),
		Undo: []Undo{{Kind: UndoCordon, At: scene.Noon}}, Hold: &Hold{Reason: ReasonProviderAbsent, Message: "the API is down", Since: scene.Noon}}
	change(&r)
	n.Spec.Unschedulable = true
	n.Annotations[NodeRepairKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
}

// TestAParkedNodeKeepsItsShare: it counts once for the cluster, its zone, its pool and the control
// plane. Its Node alone shows this, without a slot.
func TestAParkedNodeKeepsItsShare(t *testing.T) {
	one, asIs := Quantity{Value: 1}, func(*Record) {}
	for name, c := range map[string]struct {
		config func(*Config)
		park   func(n *corev1.Node)
		held   string
	}{
		"of the cluster":               {func(c *Config) { c.Limits.Concurrent = one }, func(n *corev1.Node) { park(n, asIs) }, "repairs under way in the cluster: 1 of at most 1 (n000, which is drained and waits for its next step); limits.concurrent is 1"},
		"of the zone":                  {func(c *Config) { c.Limits.ConcurrentPerZone = one }, func(n *corev1.Node) { park(n, asIs) }, "repairs under way in zone a: 1 of at most 1 (n000, which is drained and waits for its next step); limits.concurrentPerZone is 1"},
		"of the pool":                  {func(c *Config) { c.Limits.ConcurrentPerPool = one }, func(n *corev1.Node) { park(n, asIs) }, "repairs under way in pool p: 1 of at most 1 (n000, which is drained and waits for its next step); limits.concurrentPerPool is 1"},
		"it was never drained":         {func(c *Config) { c.Limits.Concurrent = one }, func(n *corev1.Node) { park(n, func(r *Record) { r.Done = nil }) }, ""},
		"somebody else cordoned it":    {func(c *Config) { c.Limits.Concurrent = one }, func(n *corev1.Node) { park(n, func(r *Record) { r.Undo = nil }) }, ""},
		"somebody has uncordoned it":   {func(c *Config) { c.Limits.Concurrent = one }, func(n *corev1.Node) { park(n, asIs); n.Spec.Unschedulable = false }, ""},
		"it has outlived its deadline": {func(c *Config) { c.Limits.Concurrent = one }, func(n *corev1.Node) { park(n, func(r *Record) { r.Deadline = scene.Noon.Add(-OverdueFor) }) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conf := scene.LimitsAlone()
			c.config(conf)
			nodes := scene.Herd(10, 0, "a")
			for _, n := range nodes {
				n.Labels["old-pool"] = "p"
			}
			c.park(nodes[0])
			f := scene.FleetOf(conf, nodes, nil, scene.Noon)
			require.Equal(t, c.held, f.AtLimit(conf, nodes[9], "", false))
			require.Empty(t, f.AtLimit(conf, nodes[0], "", false), "its own next step is not held by it")
		})
	}
}

// TestAParkedNodeCountsWhereItsRepairBegan, even if its labels change meanwhile.
func TestAParkedNodeCountsWhereItsRepairBegan(t *testing.T) {
	one := Quantity{Value: 1}
	began := func(r *Record) {
		r.Intent = &Intent{ID: "r1-0-1", At: scene.Noon, Zone: "a", Pool: "p", ControlPlane: true}
	}
	for name, change := range map[string]func(*corev1.Node){
		"another zone":   func(n *corev1.Node) { n.Labels["zone"] = "b" },
		"another pool":   func(n *corev1.Node) { n.Labels["old-pool"] = "q" },
		"no phase label": func(n *corev1.Node) { delete(n.Labels, PhaseLabel) },
	} {
		t.Run(name, func(t *testing.T) {
			conf := scene.LimitsAlone()
			conf.Limits.ConcurrentPerZone, conf.Limits.ConcurrentPerPool = one, one
			nodes := scene.Herd(10, 0, "a")
			for _, n := range nodes {
				n.Labels["old-pool"] = "p"
			}
			require.Empty(t, scene.FleetOf(conf, nodes, nil, scene.Noon).AtLimit(conf, nodes[9], "", false), "the control")
			park(nodes[0], began)
			change(nodes[0])
			f := scene.FleetOf(conf, nodes, nil, scene.Noon)
			require.NotEmpty(t, f.AtLimit(conf, nodes[9], "", false))
			nodes[9].Labels["node-role.kubernetes.io/control-plane"] = ""
			require.Contains(t, f.ControlPlaneBusy(nodes[9]), nodes[0].Name)
		})
	}
}

// TestTwoParkedNodesDoNotWaitForEachOther: both are out of service already, and each continues when
// no repair is in flight. A repair in flight in the ledger holds both.
func TestTwoParkedNodesDoNotWaitForEachOther(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 1}
	nodes := scene.Herd(10, 0)
	for _, n := range nodes[:2] {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
		park(n, func(*Record) {})
	}
	nodes[2].Labels["node-role.kubernetes.io/control-plane"] = ""
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	for _, n := range nodes[:2] {
		require.Empty(t, f.AtLimit(conf, n, "", false))
		require.Empty(t, f.ControlPlaneBusy(n))
		require.Empty(t, f.Busy(ledger.ScopeCluster, n.Name), "nor does a half-open breaker take it for the trial")
	}
	require.NotEmpty(t, f.AtLimit(conf, nodes[9], "", false))
	require.NotEmpty(t, f.ControlPlaneBusy(nodes[2]))

	f = scene.FleetOf(conf, nodes, &ledger.Ledger{Slots: []ledger.Slot{{Node: nodes[0].Name}}}, scene.Noon)
	require.Len(t, f.Occupied(), 2, "a node counts once")
	require.NotEmpty(t, f.AtLimit(conf, nodes[1], "", false), "the first one is under way by the ledger")
	require.Empty(t, f.AtLimit(conf, nodes[0], "", false))
}

// TestARepairThatParksKeepsItsShareInTheSamePass: a repair that becomes Pending without a drained
// node stops counting.
func TestARepairThatParksKeepsItsShareInTheSamePass(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 1}
	for name, drained := range map[string]bool{"drained": true, "not drained": false} {
		t.Run(name, func(t *testing.T) {
			nodes := scene.Herd(10, 0)
			scene.InFlight(nodes[0], "drain")
			f := scene.FleetOf(conf, nodes, nil, scene.Noon)
			park(nodes[0], func(r *Record) {
				if !drained {
					r.Done = nil
				}
			})
			f.Park(conf, nodes[0], ReadJournal(nodes[0]).Record)
			require.Equal(t, drained, f.AtLimit(conf, nodes[1], "", false) != "")
			require.False(t, f.NodeRepairOn(nodes[0].Name), "Pending denies nobody anything")
		})
	}
}

// TestNodesWithOneBootID: SameBoot follows the Nodes when they are added, changed and deleted.
func TestNodesWithOneBootID(t *testing.T) {
	conf := scene.LimitsAlone()
	a, b := booted("a", "x"), booted("b", "x")
	same := func(n *corev1.Node, all ...*corev1.Node) string {
		return scene.FleetOf(conf, all, nil, scene.Noon).SameBoot(n)
	}
	require.Empty(t, same(a, a, booted("b", "y")))
	require.Equal(t, "b", same(a, a, b))
	require.Equal(t, "a", same(b, a, b))
	require.Empty(t, same(booted("c", ""), booted("c", ""), booted("d", "")), "no boot ID is no boot")
}

// TestANodeThatTakesABootIDLaterDoesNotHoldItsHolder: a kubelet may write another Node's boot ID
// into its own status. The controls are Nodes that always had the shared boot ID, and containers
// whose host booted.
func TestANodeThatTakesABootIDLaterDoesNotHoldItsHolder(t *testing.T) {
	type shown = []*corev1.Node
	for name, c := range map[string]struct {
		then              []shown
		ofHolder, ofOther string
	}{
		"it had another one":               {[]shown{{booted("holder", "x"), booted("a", "y")}, {booted("a", "x")}}, "", "holder"},
		"it had none":                      {[]shown{{booted("holder", "x"), booted("a", "")}, {booted("a", "x")}}, "", "holder"},
		"it goes on after the holder":      {[]shown{{booted("holder", "w"), booted("a", "y")}, {booted("holder", "x")}, {booted("a", "x")}}, "", "holder"},
		"both are seen at once":            {[]shown{{booted("holder", "x"), booted("a", "x")}}, "a", "holder"},
		"it comes new":                     {[]shown{{booted("holder", "x")}, {booted("a", "x")}}, "a", "holder"},
		"the holder took it later":         {[]shown{{booted("holder", "y"), booted("a", "x")}, {booted("holder", "x")}}, "a", ""},
		"containers, whose host booted":    {[]shown{{booted("holder", "w"), booted("a", "w")}, {booted("holder", "x")}, {booted("a", "x")}}, "a", "holder"},
		"the two no longer have one alike": {[]shown{{booted("holder", "x"), booted("a", "y")}, {booted("a", "x")}, {booted("a", "y")}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, now := fleet.NewRoster(scene.LimitsAlone()), map[string]*corev1.Node{}
			for _, nodes := range c.then {
				r.Change(nodes, nil)
				for _, n := range nodes {
					now[n.Name] = n
				}
			}
			f := r.Fleet(&ledger.Ledger{}, false, scene.Noon)
			require.Equal(t, c.ofHolder, f.SameBoot(now["holder"]))
			require.Equal(t, c.ofOther, f.SameBoot(now["a"]))
		})
	}
}

// TestTwins: Twin follows the Nodes of one machine when they are added, changed and deleted.
func TestTwins(t *testing.T) {
	r := fleet.NewRoster(scene.LimitsAlone())
	node := func(name, providerID string) *corev1.Node {
		n := scene.Bare(name)
		n.Spec.ProviderID = providerID
		return n
	}
	a, b := node("a", "civo://x"), node("b", "civo://x")
	r.Change([]*corev1.Node{a, node("c", ""), node("d", "")}, nil)
	require.Empty(t, r.Twin(a))
	require.Empty(t, r.Twin(node("c", "")), "no provider ID names no machine")
	r.Change([]*corev1.Node{b}, nil)
	require.Equal(t, "b", r.Twin(a))
	require.Equal(t, "a", r.Twin(b))
	r.Change([]*corev1.Node{node("b", "civo://y")}, nil)
	require.Empty(t, r.Twin(a), "it has another machine by now")
	r.Change([]*corev1.Node{b}, nil)
	require.Equal(t, "b", r.Twin(a))
	r.Change(nil, []string{"b"})
	require.Empty(t, r.Twin(a))
	r.Read([]*corev1.Node{a, b})
	require.Equal(t, "b", r.Twin(a))
	r.Read([]*corev1.Node{a})
	require.Empty(t, r.Twin(a))
}

// booted returns a Node that reports the boot ID.
func booted(name, boot string) *corev1.Node {
	n := scene.Bare(name)
	n.Status.NodeInfo.BootID = boot
	return n
}
