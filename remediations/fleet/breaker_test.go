package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestBreakerOpensAtTheShareAndNeverForOneNode(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, bad int
		open       bool
	}{
		"nobody":                             {10, 0, false},
		"one of ten":                         {10, 1, false},
		"exactly the share":                  {10, 2, false},
		"one more":                           {10, 3, true},
		"one of one: never for a single one": {1, 1, false},
		"two of two":                         {2, 2, true},
		"one of three":                       {3, 1, false},
		"all of a thousand":                  {1000, 1000, true},
		"200 of a thousand":                  {1000, 200, false},
		"201 of a thousand":                  {1000, 201, true},
		"no nodes at all":                    {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := scene.FleetOf(scene.LimitsAlone(), scene.Herd(c.nodes, c.bad), nil, scene.Noon)
			require.Equal(t, c.open, len(f.Breakers) == 1)
			require.Equal(t, c.open, len(f.BreakersFor("")) == 1)
			require.Equal(t, c.open, f.Breakers[ledger.ScopeCluster].State == ledger.BreakerOpen)
		})
	}
}

func TestBreakerCountsWhatIsUnhealthy(t *testing.T) {
	open := func(nodes []*corev1.Node, firing func(string) bool) bool {
		return len(fleet.New(scene.LimitsAlone(), nodes, &ledger.Ledger{}, firing, scene.Noon).Breakers) > 0
	}
	require.False(t, open(scene.Herd(10, 2), scene.Quiet), "the control")
	require.True(t, open(scene.Herd(10, 2), func(n string) bool { return n == "n009" }), "a node with an alert of a policy")
	require.False(t, open(scene.Herd(10, 2), func(n string) bool { return n == "n000" }), "a node counts once")

	nodes := scene.Herd(10, 2)
	nodes[9].Labels[PhaseLabel] = string(PhaseExhausted)
	require.True(t, open(nodes, scene.Quiet), "an exhausted node")

	nodes = scene.Herd(10, 2)
	nodes[9].Status.Conditions = nil
	require.True(t, open(nodes, scene.Quiet), "a node whose health nobody knows does not count as well")

	nodes = scene.Herd(10, 4)
	require.True(t, open(nodes, scene.Quiet), "the control")
	for _, n := range nodes[:3] {
		n.Labels[ExcludeLabel] = "true"
	}
	require.False(t, open(nodes, scene.Quiet), "nodes that a person excluded do not count")
	nodes[0].Labels[ExcludeLabel], nodes[1].Labels[ExcludeLabel] = "false", "false"
	require.True(t, open(nodes, scene.Quiet), "nodes that are not excluded any more")

	nodes = scene.Herd(11, 3)
	require.True(t, open(nodes, scene.Quiet))
	nodes[0].CreationTimestamp = metav1.NewTime(scene.Noon.Add(-5 * time.Minute))
	require.False(t, open(nodes, scene.Quiet), "a node that has just joined does not count at all")
}

// storm keeps a cluster's breaker from one pass to the next, as the ledger does. Drydock observes
// the fleet each minute.
type storm struct {
	*Config
	ledger ledger.Ledger
	seen   time.Duration
	// trial puts the repair r1 on the Node; nil: no Node has it.
	trial func(n *corev1.Node)
}

func (s *storm) after(d time.Duration, bad int) *fleet.Fleet {
	s.seen = min(s.seen+time.Minute, d)
	nodes := scene.Herd(10, bad)
	if s.trial != nil {
		s.trial(nodes[0])
	}
	f := scene.FleetOf(s.Config, nodes, &s.ledger, scene.Noon.Add(s.seen))
	s.ledger.Status.Breakers = f.Breakers
	if s.seen < d {
		return s.after(d, bad)
	}
	return f
}

func (s *storm) state() ledger.BreakerState {
	return s.ledger.Status.Breakers[ledger.ScopeCluster].State
}

func TestBreakerIsHalfOpenAfterTheStormCooldown(t *testing.T) {
	s := storm{Config: scene.LimitsAlone()}
	s.after(0, 3)
	require.Equal(t, ledger.BreakerOpen, s.state())
	s.after(5*time.Minute, 1)
	require.Equal(t, ledger.BreakerOpen, s.state(), "below its limit, but not for long enough")
	s.after(8*time.Minute, 3)
	s.after(17*time.Minute, 1)
	require.Equal(t, ledger.BreakerOpen, s.state(), "it was bad again: the time began anew")
	require.Equal(t, scene.Noon, s.ledger.Status.Breakers[ledger.ScopeCluster].Since)
	s.after(18*time.Minute, 1)
	require.Equal(t, ledger.BreakerHalfOpen, s.state())
	s.after(48*time.Minute, 1)
	require.Equal(t, ledger.BreakerHalfOpen, s.state(), "while a node needs a repair, one must show that repairs work")
	s.after(49*time.Minute, 3)
	require.Equal(t, ledger.BreakerOpen, s.state(), "and a new storm opens it at once")
}

func TestHalfOpenBreakerClosesByItselfIfNoNodeNeedsARepair(t *testing.T) {
	s := storm{Config: scene.LimitsAlone()}
	s.after(0, 3)
	s.after(10*time.Minute, 0)
	require.Equal(t, ledger.BreakerHalfOpen, s.state())
	s.after(19*time.Minute, 0)
	require.Equal(t, ledger.BreakerHalfOpen, s.state())
	s.after(20*time.Minute, 0)
	require.Empty(t, s.ledger.Status.Breakers)
}

func TestEndOfTheTrialDecidesAboutTheBreaker(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		want    ledger.BreakerState
	}{
		{OutcomeRecovered, ""},
		{OutcomeSelfRecovered, ledger.BreakerOpen}, {OutcomeSuperseded, ledger.BreakerOpen}, {OutcomeCancelled, ledger.BreakerOpen}, {OutcomeExhausted, ledger.BreakerOpen},
	} {
		t.Run(string(c.outcome), func(t *testing.T) {
			s := storm{Config: scene.LimitsAlone()}
			s.after(0, 3)
			f := s.after(10*time.Minute, 1)
			f.Try("", "n1", "r1")
			f.Try("", "n2", "r2")
			require.Equal(t, "r1", f.Breakers[ledger.ScopeCluster].Trial, "one trial at a time")
			s.trial = func(n *corev1.Node) {
				n.Annotations[NodeRepairKey] = strings.ReplaceAll(scene.InFlight(n, "reboot").Annotations[NodeRepairKey], `"id":"rn000"`, `"id":"r1"`)
			}
			s.after(45*time.Minute, 0)
			require.Equal(t, ledger.BreakerHalfOpen, s.state(), "while the trial is on, its end is waited for")
			ended := func(id string, o Outcome) string {
				return EncodeHistory(nil, Entry{ID: id, Outcome: o})
			}
			on := s.trial
			s.trial = func(n *corev1.Node) { on(n); n.Annotations[HistoryKey] = ended("r2", OutcomeRecovered) }
			s.after(46*time.Minute, 0)
			require.Equal(t, ledger.BreakerHalfOpen, s.state(), "the end of another repair says nothing")
			s.trial = func(n *corev1.Node) { n.Annotations[HistoryKey] = ended("r1", c.outcome) }
			s.after(47*time.Minute, 0)
			require.Equal(t, c.want, s.state())
			if c.want == ledger.BreakerOpen {
				s.after(56*time.Minute, 0)
				require.Equal(t, ledger.BreakerOpen, s.state(), "open for another stormCooldown")
			}
		})
	}
}

// TestTrialContinuesWhileAnythingOfItExists: this is a record in any phase but Exhausted, a slot,
// or an orphan. A repair without a trace does not show that repairs work.
func TestTrialContinuesWhileAnythingOfItExists(t *testing.T) {
	for name, c := range map[string]struct {
		ledger ledger.Ledger
		record func(n *corev1.Node)
		want   ledger.BreakerState
	}{
		"nothing":                 {want: ledger.BreakerOpen},
		"a slot":                  {ledger: ledger.Ledger{Slots: []ledger.Slot{{Node: "n9", Repair: "rn000"}}}, want: ledger.BreakerHalfOpen},
		"an orphan":               {ledger: ledger.Ledger{Orphans: []ledger.Orphan{{Node: "n9", Record: Record{ID: "rn000"}}}}, want: ledger.BreakerHalfOpen},
		"a record":                {record: func(n *corev1.Node) { scene.InFlight(n, "reboot") }, want: ledger.BreakerHalfOpen},
		"a record that is held":   {record: func(n *corev1.Node) { scene.InPhase(scene.InFlight(n, "reboot"), PhasePending) }, want: ledger.BreakerHalfOpen},
		"a record that ran out":   {record: func(n *corev1.Node) { scene.InPhase(scene.InFlight(n, "reboot"), PhaseExhausted) }, want: ledger.BreakerOpen},
		"another repair's":        {ledger: ledger.Ledger{Slots: []ledger.Slot{{Node: "n000", Repair: "r2"}}}, want: ledger.BreakerOpen},
		"another repair's orphan": {ledger: ledger.Ledger{Orphans: []ledger.Orphan{{Node: "n9", Record: Record{ID: "r2"}}}}, want: ledger.BreakerOpen},
		"an end, after another's": {record: func(n *corev1.Node) {
			other := EncodeHistory(nil, Entry{ID: "rn0009", Outcome: OutcomeCancelled})
			n.Annotations[HistoryKey] = EncodeHistory(DecodeHistory(other), Entry{ID: "rn000", Outcome: OutcomeRecovered})
		}, want: ""},
		"an end, before another's": {record: func(n *corev1.Node) {
			own := EncodeHistory(nil, Entry{ID: "rn000", Outcome: OutcomeRecovered})
			n.Annotations[HistoryKey] = EncodeHistory(DecodeHistory(own), Entry{ID: "rn0009", Outcome: OutcomeCancelled})
		}, want: ""},
		"an end, with a relapse": {record: func(n *corev1.Node) {
			n.Annotations[HistoryKey] = EncodeHistory(nil, Entry{ID: "rn000", Outcome: "Relapsed"})
		}, want: ledger.BreakerOpen},
	} {
		t.Run(name, func(t *testing.T) {
			s := storm{Config: scene.LimitsAlone(), ledger: c.ledger, trial: c.record}
			s.ledger.Status.Breakers = map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerHalfOpen, Since: scene.Noon, Quiet: scene.Noon, Seen: scene.Noon, Trial: "rn000"}}
			s.after(0, 0)
			require.Equal(t, c.want, s.state())
		})
	}
}

// TestUnobservedTimeDoesNotCountAsCalm: Drydock is blind, no replica leads, or the fleet is empty.
func TestUnobservedTimeDoesNotCountAsCalm(t *testing.T) {
	for name, unseen := range map[string]func(s *storm){
		"blind": func(s *storm) {
			for m := 6; m < 60; m++ {
				r := fleet.NewRoster(s.Config)
				r.Read(scene.Herd(10, 0))
				s.ledger.Status.Breakers = r.Fleet(&s.ledger, true, scene.Noon.Add(time.Duration(m)*time.Minute)).Breakers
			}
		},
		"nobody leads": func(*storm) {},
		"an empty fleet": func(s *storm) {
			for m := 6; m < 60; m++ {
				s.ledger.Status.Breakers = scene.FleetOf(s.Config, nil, &s.ledger, scene.Noon.Add(time.Duration(m)*time.Minute)).Breakers
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := storm{Config: scene.LimitsAlone()}
			s.after(0, 3)
			s.after(5*time.Minute, 0)
			unseen(&s)
			require.Equal(t, ledger.BreakerOpen, s.state())
			s.seen = time.Hour - time.Minute
			s.after(time.Hour+3*time.Minute, 0)
			require.Equal(t, ledger.BreakerOpen, s.state(), "five minutes of calm were seen before, and three after")
			s.after(time.Hour+6*time.Minute, 0)
			require.Equal(t, ledger.BreakerHalfOpen, s.state(), "it goes on from where it was")
		})
	}
}

// TestBreakerOutlivesTheNodesOfItsZone: the deletion of Nodes does not show that a zone is well.
func TestBreakerOutlivesTheNodesOfItsZone(t *testing.T) {
	c, l := scene.LimitsAlone(), &ledger.Ledger{}
	at := func(m int, nodes []*corev1.Node) ledger.BreakerState {
		l.Status.Breakers = scene.FleetOf(c, nodes, l, scene.Noon.Add(time.Duration(m)*time.Minute)).Breakers
		return l.Status.Breakers["zone/a"].State
	}
	down := scene.Herd(20, 0, "a", "b")
	for i := 0; i < 20; i += 2 {
		scene.Unready(down[i])
	}
	require.Equal(t, ledger.BreakerOpen, at(0, down))
	for m := 1; m <= 21; m++ {
		want := ledger.BreakerOpen
		switch {
		case m >= 20:
			want = ""
		case m >= 10:
			want = ledger.BreakerHalfOpen
		}
		require.Equal(t, want, at(m, scene.Herd(10, 0, "b")), m)
	}
}

// TestHalfOpenBreakerOfAZone: only the zone's nodes wait for the end of its trial.
func TestHalfOpenBreakerOfAZone(t *testing.T) {
	l := &ledger.Ledger{Status: ledger.Status{Breakers: map[string]ledger.Breaker{"zone/a": {State: ledger.BreakerHalfOpen, Since: scene.Noon, Quiet: scene.Noon}}}}
	f := scene.FleetOf(scene.LimitsAlone(), scene.Herd(30, 1, "a", "b"), l, scene.Noon)
	f.Try("b", "n1", "r1")
	require.Empty(t, f.Breakers["zone/a"].Trial, "a repair of another zone is no trial of this one")
	f.Try("a", "n2", "r2")
	require.Equal(t, "r2", f.Breakers["zone/a"].Trial)
	require.Empty(t, f.BreakersFor("b"))
	require.Equal(t, []string{"zone/a"}, f.BreakersFor("a"))
}

func TestOpenBreakerGoesBeforeAHalfOpenOne(t *testing.T) {
	f := &fleet.Fleet{Breakers: map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerHalfOpen}, "zone/a": {State: ledger.BreakerOpen}}}
	require.Equal(t, []string{"zone/a", ledger.ScopeCluster}, f.BreakersFor("a"))
	require.Equal(t, []string{ledger.ScopeCluster}, f.BreakersFor("b"))
	require.Empty(t, (&fleet.Fleet{Breakers: map[string]ledger.Breaker{"zone/": {State: ledger.BreakerOpen}}}).BreakersFor(""), "no zone is not a zone")
}

func TestScopeIsBusyWithAnothersRepair(t *testing.T) {
	c := scene.LimitsAlone()
	nodes := scene.Herd(10, 0, "a", "b")
	scene.InFlight(nodes[0], "reboot")
	f := scene.FleetOf(c, nodes, nil, scene.Noon)
	require.NotEmpty(t, f.Busy(ledger.ScopeCluster, "n001"))
	require.NotEmpty(t, f.Busy("zone/a", "n002"))
	require.Empty(t, f.Busy("zone/b", "n001"))
	require.Empty(t, f.Busy(ledger.ScopeCluster, "n000"), "its own is no other's")
	f.Vacate("n000")
	f.Occupy(c, nodes[0], "", true)
	require.Empty(t, f.Busy(ledger.ScopeCluster, "n001"), "a repair that would be is none")
}

// TestLimitsUnhealthyIsACeilingOverAllNodes: while the whole fleet is within the limit, a zone with
// too many unhealthy nodes stops only itself. Above the limit, repairs stop in all zones.
func TestLimitsUnhealthyIsACeilingOverAllNodes(t *testing.T) {
	nodes, down := scene.Herd(30, 0, "a", "b", "c"), 0
	for _, n := range nodes { // limits.unhealthy is 20%: 6 of 30, and 2 of 10
		if n.Labels["zone"] != "a" {
			continue
		}
		scene.Unready(n)
		down++
		stopped := map[string]bool{}
		for _, zone := range []string{"a", "b", ""} {
			stopped[zone] = len(scene.FleetOf(scene.LimitsAlone(), nodes, nil, scene.Noon).BreakersFor(zone)) > 0
		}
		require.Equal(t, map[string]bool{"a": down > 2, "b": down > 6, "": down > 6}, stopped, "%d of 30 are down, all in zone a", down)
	}
	require.Equal(t, 10, down)
}
