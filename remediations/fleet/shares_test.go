package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestALimitNamesTheRepairThatIsFurthest: if that repair is not in flight, the message also says
// why it counts. Of equal repairs, the first by name is named.
func TestALimitNamesTheRepairThatIsFurthest(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 1}
	for name, c := range map[string]struct {
		occupy []string // what each of the first nodes does
		want   string
	}{
		"nobody":           {nil, ""},
		"would be":         {[]string{"would"}, "n000, which observe mode would repair"},
		"next":             {[]string{"would", "next"}, "n001, whose repair is about to begin"},
		"parked":           {[]string{"next", "would", "parked"}, "n002, which is drained and waits for its next step"},
		"under way":        {[]string{"parked", "next", "would", "under way"}, "n003"},
		"two are as far":   {[]string{"would", "next", "next", "would"}, "n001, whose repair is about to begin"},
		"two are parked":   {[]string{"parked", "parked"}, "n000, which is drained and waits for its next step"},
		"two are would-be": {[]string{"would", "would"}, "n000, which observe mode would repair"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 { // in whatever order a map gives its entries
				nodes := scene.Herd(6, 0)
				for i, how := range c.occupy {
					if how == "parked" {
						park(nodes[i], func(*Record) {})
					}
				}
				f := scene.FleetOf(conf, nodes, nil, scene.Noon)
				for i, how := range c.occupy {
					switch how {
					case "would":
						f.Occupy(conf, nodes[i], "", true)
					case "next":
						f.Next(conf, nodes[i], "", false)
					case "under way":
						f.Occupy(conf, nodes[i], "", false)
					}
				}
				got := f.AtLimit(conf, nodes[5], "", true)
				if c.want == "" {
					require.Empty(t, got)
					continue
				}
				require.Contains(t, got, "("+c.want+")")
			}
		})
	}
	conf.Limits.Concurrent = Quantity{}
	nodes := scene.Herd(2, 0)
	require.Equal(t, "repairs under way in the cluster: 0 of at most 0; limits.concurrent is 0",
		scene.FleetOf(conf, nodes, nil, scene.Noon).AtLimit(conf, nodes[0], "", false), "a limit of 0 is reached by no node")
}

// TestANodeHasTheSharesOfWhatItIsIn: a node without a zone or a pool has no share for it.
func TestANodeHasTheSharesOfWhatItIsIn(t *testing.T) {
	conf := scene.LimitsAlone()
	for name, c := range map[string]struct {
		labels map[string]string
		shares int
	}{
		"nothing":         {nil, 1},
		"a zone":          {map[string]string{"zone": "a"}, 2},
		"a pool":          {map[string]string{"pool": "p"}, 2},
		"a zone and pool": {map[string]string{"zone": "a", "pool": "p"}, 3},
	} {
		n := scene.Bare("n1")
		n.Labels = c.labels
		other := scene.InFlight(scene.Bare("n2"), "reboot")
		f := scene.FleetOf(conf, []*corev1.Node{n, other}, nil, scene.Noon)
		shares := f.Shares(conf, n, "", false)
		require.Len(t, shares, c.shares, name)
		for _, s := range shares[1:] {
			require.Contains(t, s.String(), ": 0 of", "%s: the other node is in none", name)
		}
	}
}

// TestWhatOnlyWouldBeReplacesNothingThatIs: a repair that observe mode would do does not replace a
// repair in flight. It can become one that is about to begin.
func TestWhatOnlyWouldBeReplacesNothingThatIs(t *testing.T) {
	conf, n, other := scene.LimitsAlone(), scene.Bare("n1"), scene.Bare("n2")
	conf.Limits.Concurrent = Quantity{Value: 1}
	const none, would, next, underWay = "", "observe mode would", "about to begin", "under way"
	state := func(f *fleet.Fleet) string {
		shares := f.AtLimit(conf, other, "", true)
		for _, s := range []string{would, next} {
			if strings.Contains(shares, s) {
				return s
			}
		}
		if shares != "" {
			return underWay
		}
		return none
	}
	occupy := func(would bool) func(f *fleet.Fleet) { return func(f *fleet.Fleet) { f.Occupy(conf, n, "", would) } }
	begin := func(would bool) func(f *fleet.Fleet) { return func(f *fleet.Fleet) { f.Next(conf, n, "", would) } }
	for name, c := range map[string]struct {
		then []func(f *fleet.Fleet)
		want string
	}{
		"nothing":                       {nil, none},
		"a would-be repair":             {[]func(*fleet.Fleet){occupy(true)}, would},
		"a repair":                      {[]func(*fleet.Fleet){occupy(false)}, underWay},
		"a repair, then a would-be one": {[]func(*fleet.Fleet){occupy(false), occupy(true)}, underWay},
		"a would-be repair begins":      {[]func(*fleet.Fleet){occupy(true), occupy(false)}, underWay},
		"two would-be repairs":          {[]func(*fleet.Fleet){occupy(true), occupy(true)}, would},
		"a repair is next":              {[]func(*fleet.Fleet){begin(false)}, next},
		"a would-be repair is next":     {[]func(*fleet.Fleet){begin(true)}, would},
		"a would-be repair, then next":  {[]func(*fleet.Fleet){occupy(true), begin(false)}, next},
		"the next step of a repair":     {[]func(*fleet.Fleet){occupy(false), begin(false)}, underWay},
		"next, twice":                   {[]func(*fleet.Fleet){begin(false), begin(false)}, next},
	} {
		t.Run(name, func(t *testing.T) {
			f := scene.FleetOf(conf, []*corev1.Node{n, other}, nil, scene.Noon)
			for _, do := range c.then {
				do(f)
			}
			require.Equal(t, c.want, state(f))
		})
	}
}

// TestHealthOfAZone: only the zone's nodes count. A zone without a Node has no health.
func TestHealthOfAZone(t *testing.T) {
	f := scene.FleetOf(scene.LimitsAlone(), scene.Herd(6, 1, "a", "b"), nil, scene.Noon)
	unhealthy, nodes, ok := f.HealthIn("a")
	require.True(t, ok)
	require.Equal(t, []int{1, 3}, []int{unhealthy, nodes})
	unhealthy, nodes, ok = f.HealthIn("b")
	require.True(t, ok)
	require.Equal(t, []int{0, 3}, []int{unhealthy, nodes})
	_, _, ok = f.HealthIn("c")
	require.False(t, ok)
}

func TestTheQuorumOfANodeIsNamed(t *testing.T) {
	n := scene.Bare("n1")
	require.Equal(t, "control-plane nodes", fleet.Peers(n))
	n.Labels["node-role.kubernetes.io/etcd"] = ""
	require.Equal(t, "nodes of etcd", fleet.Peers(n))
}

// TestTheNextWindowIsComputedOnce: the cached time is used until the window opens, or until the
// clock goes back.
func TestTheNextWindowIsComputedOnce(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Windows = []Window{{From: WallTime{Hour: 14}, To: WallTime{Hour: 15}, Location: time.UTC}}
	r := fleet.NewRoster(conf)
	today, tomorrow := scene.Noon.Add(2*time.Hour), scene.Noon.Add(26*time.Hour)
	none := time.Time{}
	for i, c := range []struct {
		at    time.Time
		open  bool
		next  time.Time
		until time.Time
	}{
		{scene.Noon, false, today, today},
		{scene.Noon.Add(time.Hour), false, today, today},
		{today, true, none, none},
		{today.Add(time.Hour), false, tomorrow, tomorrow},
		{scene.Noon, false, today, today}, // the clock was set back
		{today.Add(time.Minute), true, none, none},
	} {
		open, next := r.Fleet(&ledger.Ledger{}, false, c.at).Window()
		require.Equal(t, c.open, open, i)
		require.Equal(t, c.next, next, i)
		require.Equal(t, c.until, r.RememberedWindow(), i)
	}
	conf.Windows = nil
	r = fleet.NewRoster(conf)
	open, _ := r.Fleet(&ledger.Ledger{}, false, scene.Noon).Window()
	require.True(t, open, "without windows repairs may always begin")
}

// TestTheSlotOfALocationOccupiesNoNode: the slot does not count in the limits of nodes. It holds
// the repairs of its two nodes, and of more nodes if the record on the Node names them.
func TestTheSlotOfALocationOccupiesNoNode(t *testing.T) {
	c := scene.LimitsAlone()
	c.Limits.Locations = LocationLimits{Concurrent: 1}
	c.Policies = []*Policy{{Name: "mesh-leader-degraded", Kind: KindLocation, Mode: ModeObserve}}
	slot := ledger.Slot{Kind: KindLocation, Node: "n1", Successor: "n3", Location: "eu", Repair: "r1", Attempt: "r1-0-2"}
	nodes := func(change func(r *Record)) []*corev1.Node {
		n := scene.Bare("n1")
		if change != nil {
			r := scene.LocationRecord(PhasePending)
			change(r)
			n.Annotations[LocationKey], n.Labels[PhaseLabel] = r.Encode(), string(r.Phase)
		}
		return []*corev1.Node{n, scene.Bare("n2"), scene.Bare("n3")}
	}
	at := func(l *ledger.Ledger, all []*corev1.Node) *fleet.Fleet { return scene.FleetOf(c, all, l, scene.Noon) }

	f := at(&ledger.Ledger{Slots: []ledger.Slot{slot}}, nodes(nil))
	require.Empty(t, f.Occupied())
	require.NotEmpty(t, f.LocationRepairOn("n1"))
	require.NotEmpty(t, f.LocationRepairOn("n3"))
	require.Empty(t, f.LocationRepairOn("n2"))
	require.NotEmpty(t, f.LocationRepairIn("eu", "n2"))
	require.Empty(t, f.LocationRepairIn("us", "n2"), "another location")
	require.Empty(t, f.LocationRepairIn("eu", "n1"), "it is recorded on this node")
	require.Empty(t, f.LocationsAtLimit(c, "n1", false), "its own repair does not hold it")
	require.Contains(t, f.LocationsAtLimit(c, "n2", false), "(location eu)")

	observed := func(r *Record) {
		r.Intent, r.Moves, r.Hold = nil, nil, &Hold{Reason: ReasonObserving, Message: "why", Since: scene.Noon}
	}
	held := func(r *Record) { r.Hold = &Hold{Reason: ReasonCooldown, Message: "why", Since: scene.Noon} }
	f = at(nil, nodes(observed))
	require.Empty(t, f.LocationRepairOn("n1"))
	require.Empty(t, f.LocationsAtLimit(c, "n2", false))
	require.NotEmpty(t, f.LocationsAtLimit(c, "n2", true), "a would-be repair counts among others")
	require.Empty(t, at(nil, nodes(held)).LocationsAtLimit(c, "n2", true), "a repair that a guard holds does not")
	require.NotEmpty(t, at(&ledger.Ledger{Slots: []ledger.Slot{slot}}, nodes(observed)).LocationRepairOn("n3"), "its slot goes before what would be")

	f = at(nil, nodes(nil))
	f.OccupyLocation("n1", scene.LocationRecord(PhaseVerifying), true)
	f.OccupyLocation("n1", scene.LocationRecord(PhaseVerifying), false)
	require.NotEmpty(t, f.LocationRepairOn("n1"), "a would-be repair begins")
	again := scene.LocationRecord(PhaseVerifying)
	again.Moves = append(again.Moves, scene.TheMove("n2", "n3"))
	require.Empty(t, f.LocationRepairOn("n3"), "the control")
	f.OccupyLocation("n1", again, false)
	require.NotEmpty(t, f.LocationRepairOn("n3"), "its next attempt moves the leadership to another node")
	other := scene.LocationRecord(PhaseVerifying)
	other.Location = "us"
	f.OccupyLocation("n2", other, false)
	require.Contains(t, f.LocationsAtLimit(c, "n3", false), "(location eu)", "the first by its node is named")
}

// TestParkedAsTheLifecycleAsks: a repair is parked while it is Pending on a drained node, and no
// longer than it may be Pending.
func TestParkedAsTheLifecycleAsks(t *testing.T) {
	n := scene.Bare("n1")
	park(n, func(*Record) {})
	r := ReadJournal(n).Record
	until := scene.Noon.Add(PendingFor).Add(OverdueFor)
	require.True(t, fleet.Parked(n, r, scene.Noon))
	require.True(t, fleet.Parked(n, r, until.Add(-time.Second)))
	require.False(t, fleet.Parked(n, r, until))
	acting := r.Clone()
	acting.Phase = PhaseActing
	require.False(t, fleet.Parked(n, acting, scene.Noon))
	n.Spec.Unschedulable = false
	require.False(t, fleet.Parked(n, r, scene.Noon))
}

// TestAWouldBeRepairWaitsForParkedNodes: in observe mode the node is still in service, so its
// repair would take one more node out of service.
func TestAWouldBeRepairWaitsForParkedNodes(t *testing.T) {
	conf := scene.LimitsAlone()
	conf.Limits.Concurrent = Quantity{Value: 1}
	nodes := scene.Herd(3, 0)
	park(nodes[0], func(*Record) {})
	f := scene.FleetOf(conf, nodes, nil, scene.Noon)
	f.Occupy(conf, nodes[1], "", true)
	require.NotEmpty(t, f.AtLimit(conf, nodes[1], "", true))
	f.Occupy(conf, nodes[1], "", false)
	require.Empty(t, f.AtLimit(conf, nodes[1], "", true), "the control: it is under repair itself")
	require.False(t, f.NodeRepairOn(nodes[0].Name))
	f.Occupy(conf, nodes[0], "", false)
	require.True(t, f.NodeRepairOn(nodes[0].Name), "its next step begins")
}
