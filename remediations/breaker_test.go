package remediations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			f := fleetOf(limits(), herd(c.nodes, c.bad), nil, noon)
			require.Equal(t, c.open, len(f.Breakers) == 1)
			_, b := f.breakerFor("")
			require.Equal(t, c.open, b.State == BreakerOpen)
		})
	}
}

func TestBreakerCountsWhatIsUnhealthy(t *testing.T) {
	open := func(nodes []*corev1.Node, firing func(string) bool) bool {
		return len(NewFleet(limits(), nodes, &Ledger{}, firing, noon).Breakers) > 0
	}
	require.False(t, open(herd(10, 2), quiet), "the control")
	require.True(t, open(herd(10, 2), func(n string) bool { return n == "n009" }), "a node with an alert of a policy")
	require.False(t, open(herd(10, 2), func(n string) bool { return n == "n000" }), "a node counts once")

	nodes := herd(10, 2)
	nodes[9].Labels[PhaseLabel] = string(Exhausted)
	require.True(t, open(nodes, quiet), "an exhausted node")

	nodes = herd(10, 2)
	nodes[9].Status.Conditions = nil
	require.True(t, open(nodes, quiet), "a node whose health nobody knows does not count as well")

	nodes = herd(11, 3)
	require.True(t, open(nodes, quiet))
	nodes[0].CreationTimestamp = metav1.NewTime(noon.Add(-5 * time.Minute))
	require.False(t, open(nodes, quiet), "a node that has just joined does not count at all")
}

// storm carries a cluster's breaker from one pass to the next, as the ledger does.
type storm struct {
	*Config
	ledger Ledger
}

func (s *storm) after(d time.Duration, bad int) *Fleet {
	f := fleetOf(s.Config, herd(10, bad), &s.ledger, noon.Add(d))
	s.ledger.Status.Breakers = f.Breakers
	return f
}

func (s *storm) state() BreakerState { return s.ledger.Status.Breakers[ScopeCluster].State }

func TestBreakerIsHalfOpenAfterTheStormCooldown(t *testing.T) {
	s := storm{Config: limits()}
	s.after(0, 3)
	require.Equal(t, BreakerOpen, s.state())
	s.after(5*time.Minute, 1)
	require.Equal(t, BreakerOpen, s.state(), "below its limit, but not for long enough")
	s.after(8*time.Minute, 3)
	s.after(17*time.Minute, 1)
	require.Equal(t, BreakerOpen, s.state(), "it was bad again: the time began anew")
	require.Equal(t, noon, s.ledger.Status.Breakers[ScopeCluster].Since)
	s.after(18*time.Minute, 1)
	require.Equal(t, BreakerHalfOpen, s.state())
	s.after(48*time.Minute, 1)
	require.Equal(t, BreakerHalfOpen, s.state(), "while a node needs a repair, one must show that repairs work")
	s.after(49*time.Minute, 3)
	require.Equal(t, BreakerOpen, s.state(), "and a new storm opens it at once")
}

func TestHalfOpenBreakerClosesByItselfWhereNobodyNeedsARepair(t *testing.T) {
	s := storm{Config: limits()}
	s.after(0, 3)
	s.after(10*time.Minute, 0)
	require.Equal(t, BreakerHalfOpen, s.state())
	s.after(19*time.Minute, 0)
	require.Equal(t, BreakerHalfOpen, s.state())
	s.after(20*time.Minute, 0)
	require.Empty(t, s.ledger.Status.Breakers)
}

func TestEndOfTheTrialDecidesAboutTheBreaker(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		want    BreakerState
	}{
		{Recovered, ""},
		{SelfRecovered, BreakerOpen}, {Superseded, BreakerOpen}, {Cancelled, BreakerOpen}, {OutcomeExhausted, BreakerOpen},
	} {
		t.Run(string(c.outcome), func(t *testing.T) {
			s := storm{Config: limits()}
			s.after(0, 3)
			f := s.after(10*time.Minute, 1)
			f.Try("", "r1")
			f.Try("", "r2")
			require.Equal(t, "r1", f.Breakers[ScopeCluster].Trial, "one trial at a time")
			s.after(45*time.Minute, 0)
			require.Equal(t, BreakerHalfOpen, s.state(), "while the trial is on, its end is waited for")
			f = s.after(46*time.Minute, 0)
			f.Tried("r2", Recovered, noon)
			require.Equal(t, BreakerHalfOpen, s.state(), "the end of another repair says nothing")
			f.Tried("r1", c.outcome, noon.Add(46*time.Minute))
			require.Equal(t, c.want, s.state())
			if c.want == BreakerOpen {
				s.after(55*time.Minute, 0)
				require.Equal(t, BreakerOpen, s.state(), "open for another stormCooldown")
			}
		})
	}
}

// TestHalfOpenBreakerOfAZone: the zone's nodes wait for its trial, the others do not.
func TestHalfOpenBreakerOfAZone(t *testing.T) {
	l := &Ledger{Status: LedgerStatus{Breakers: map[string]Breaker{"zone/a": {State: BreakerHalfOpen, Since: noon, Quiet: noon}}}}
	f := fleetOf(limits(), herd(30, 1, "a", "b"), l, noon)
	f.Try("b", "r1")
	require.Empty(t, f.Breakers["zone/a"].Trial, "a repair of another zone is no trial of this one")
	f.Try("a", "r2")
	require.Equal(t, "r2", f.Breakers["zone/a"].Trial)
	scope, _ := f.breakerFor("b")
	require.Empty(t, scope)
	scope, b := f.breakerFor("a")
	require.Equal(t, "zone/a", scope)
	require.Equal(t, BreakerHalfOpen, b.State)
}

func TestOpenBreakerGoesBeforeAHalfOpenOne(t *testing.T) {
	f := &Fleet{Breakers: map[string]Breaker{ScopeCluster: {State: BreakerHalfOpen}, "zone/a": {State: BreakerOpen}}}
	scope, _ := f.breakerFor("a")
	require.Equal(t, "zone/a", scope)
	scope, _ = f.breakerFor("b")
	require.Equal(t, ScopeCluster, scope)
	scope, _ = (&Fleet{Breakers: map[string]Breaker{"zone/": {State: BreakerOpen}}}).breakerFor("")
	require.Empty(t, scope, "no zone is not a zone")
}

func TestScopeIsBusyWithAnothersRepair(t *testing.T) {
	c := limits()
	nodes := herd(10, 0, "a", "b")
	inFlight(nodes[0], "reboot")
	f := fleetOf(c, nodes, nil, noon)
	require.True(t, f.busy(ScopeCluster, "n001"))
	require.True(t, f.busy("zone/a", "n002"))
	require.False(t, f.busy("zone/b", "n001"))
	require.False(t, f.busy(ScopeCluster, "n000"), "its own is no other's")
	f.Vacate("n000")
	f.Occupy(c, nodes[0], true)
	require.False(t, f.busy(ScopeCluster, "n001"), "a repair that would be is none")
}

func TestZoneThatIsDownStopsItselfAlone(t *testing.T) {
	nodes := herd(30, 0, "a", "b", "c")
	for _, n := range nodes {
		if n.Labels["zone"] == "a" {
			unready(n)
		}
	}
	stops := func(zone string) bool {
		scope, _ := fleetOf(limits(), nodes, nil, noon).breakerFor(zone)
		return scope != ""
	}
	require.True(t, stops("a"))
	require.False(t, stops("b"))
	require.False(t, stops(""), "a node without a zone is stopped by the cluster's breaker alone")
	for _, n := range nodes {
		if n.Labels["zone"] == "b" {
			unready(n)
		}
	}
	require.True(t, stops("c"), "two zones down are the cluster's trouble")
}
