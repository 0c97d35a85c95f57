package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestStorms: many machines fail at once, again and again. While a breaker is open, nothing is done
// in its scope. While it is half-open, at most one repair runs. The world checks that at every
// intent. In the end all machines are cured.
func TestStorms(t *testing.T) {
	t.Parallel()
	calls, stands := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c := modelConfig()
		c.Limits.Unhealthy = remediations.Quantity{Value: rapid.SampledFrom([]int{20, 40}).Draw(rt, "unhealthy"), Percent: true}
		c.Limits.Concurrent.Value = rapid.IntRange(1, 4).Draw(rt, "concurrent")
		c.Limits.RepairsPerNode, c.Policies[0].Cooldown = 99, 0
		const nodes = 18
		ways := layout{rapid.IntRange(1, 3).Draw(rt, "zones"), 2, rapid.SampledFrom([]int{0, 3}).Draw(rt, "control plane")}
		inBubble(t, func(*testing.T) {
			w := newWorldOf(c, nodes, ways)
			defer w.close()
			w.start()
			for range rapid.IntRange(1, 3).Draw(rt, "waves") {
				from, count := rapid.IntRange(0, nodes-1).Draw(rt, "from"), rapid.IntRange(1, 9).Draw(rt, "machines")
				w.do(func() {
					for i := range count {
						w.ail(fmt.Sprintf("n%d", (from+i)%nodes), 1)
					}
				})
				w.pass(rapid.SampledFrom([]time.Duration{20 * time.Second, 4 * time.Minute, 15 * time.Minute}).Draw(rt, "for"))
				if rapid.Bool().Draw(rt, "most heal") {
					w.do(func() {
						for i := range count - 1 {
							w.heal(fmt.Sprintf("n%d", (from+i)%nodes))
						}
					})
				}
				w.pass(rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Minute}).Draw(rt, "then"))
			}
			w.do(func() {
				for i := range nodes - 1 { // Drydock must cure the machines that are still sick then
					w.heal(fmt.Sprintf("n%d", i))
				}
			})
			w.pass(time.Hour)
			if v := w.violated(); v != "" {
				rt.Fatal(v)
			}
			w.do(func() {
				for name, m := range w.machines {
					if !m.well() {
						rt.Fatalf("%s is still sick", name)
					}
				}
			})
			calls += w.callCount()
			stands += at(w, func() int { return w.stands })
		})
	})
	require.NotZero(t, calls)
	require.NotZero(t, stands, "while nothing changes, nothing is decided again")
}

// TestOneNodeIsTriedAfterAStorm: while the breaker is half-open, the oldest fault is first. Its
// cure closes the breaker, and the others follow.
func TestOneNodeIsTriedAfterAStorm(t *testing.T) {
	conf := modelConfig()
	conf.Limits.Concurrent.Value = 3
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for _, n := range []string{"n4", "n3", "n2", "n1"} {
				w.ail(n, 1)
			}
			w.machines["n3"].since = time.Now().Add(-10 * time.Second)
		})
		w.pass(3 * time.Minute)
		require.Zero(t, w.callCount())
		w.do(func() { w.heal("n1"); w.heal("n2") })
		require.True(t, w.until(4*time.Minute, func() bool { return len(w.calls) == 1 }))
		require.Equal(t, "n3", w.callTo(0), "the oldest fault")
		w.pass(30 * time.Second)
		require.Equal(t, 1, w.callCount(), "n4 waits for how it ends")
		require.Equal(t, ledger.BreakerHalfOpen, at(w, func() ledger.BreakerState { return w.book().Status.Breakers[ledger.ScopeCluster].State }))
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes())
		require.Empty(t, at(w, func() map[string]ledger.Breaker { return w.book().Status.Breakers }))
	})
}

// TestTrialThatDoesNotCureOpensTheBreakerAgain: the next node waits for another stormCooldown.
func TestTrialThatDoesNotCureOpensTheBreakerAgain(t *testing.T) {
	conf := modelConfig()
	conf.Policies[0].Plan[0].Attempts = 1
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for _, n := range []string{"n1", "n2", "n3", "n4"} {
				w.ail(n, 9)
			}
		})
		w.pass(time.Minute)
		w.do(func() { w.heal("n1"); w.heal("n2") })
		require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }))
		require.True(t, w.until(15*time.Minute, func() bool { return len(w.ended) == 1 }))
		require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
		w.pass(90 * time.Second)
		require.Equal(t, 1, w.callCount())
		require.True(t, w.until(2*time.Minute, func() bool { return len(w.calls) == 2 }))
	})
}

// TestPolicyThatFailsThriceStops: it stays stopped until a person resets one of its nodes.
func TestPolicyThatFailsThriceStops(t *testing.T) {
	conf := modelConfig()
	conf.Policies[0].Plan[0].Attempts = 1
	inWorld(t, conf, 12, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			for _, n := range []string{"n0", "n1", "n2", "n3"} {
				w.ail(n, 9)
			}
		})
		w.pass(3 * time.Hour)
		require.Equal(t, 3, w.callCount())
		require.Contains(t, at(w, func() map[remediations.Reason]string { return w.book().Status.Holds }), remediations.ReasonPolicyFailing)
		require.Equal(t, remediations.Concern{Policy: conf.Policies[0].Name}, at(w, func() remediations.Concern { return w.book().Status.Concerns[remediations.ReasonPolicyFailing] }))
		w.do(func() { w.heal("n0"); w.edit("n0", edit(remediations.ResetKey, "true")) })
		w.pass(5 * time.Minute)
		require.Equal(t, 4, w.callCount(), "a person has looked")
	})
}

// TestAWordIsAnsweredWhileAStormIsClearedAway: after a storm the alerts of many nodes end at once,
// and each causes a write without urgency. A person's request waits for one pass, and not for all
// these writes.
func TestAWordIsAnsweredWhileAStormIsClearedAway(t *testing.T) {
	const nodes = 100
	inWorld(t, modelConfig(), nodes, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for n := range w.nodes {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		w.pass(30 * time.Second)
		carrying := func() (count int) {
			w.do(func() {
				for _, n := range w.nodes {
					count += min(1, len(remediations.AlertsOn(n.Annotations)))
				}
			})
			return count
		}
		require.Equal(t, nodes, carrying())
		w.do(func() {
			w.roundTrip = 100 * time.Millisecond
			for n := range w.nodes {
				w.heal(n)
			}
		})
		left := nodes
		for range 6000 { // until Alertmanager was queried
			if left = carrying(); left < nodes {
				break
			}
			w.pass(100 * time.Millisecond)
		}
		require.Less(t, left, nodes)
		require.Greater(t, left, nodes/2, "the clearing away has begun, and is far from its end")
		w.do(func() { w.hold("n77", edit(remediations.ResetKey, "true")) })
		w.pass(2 * time.Second)
		require.NotContains(t, w.nodeOf("n77").Annotations, remediations.ResetKey, "answered")
		require.Positive(t, carrying(), "before all was cleared away")
		w.pass(time.Minute)
		require.Zero(t, carrying())
	})
}

// TestADecisionStandsWhileItsConditionIsData: the breaker holds four nodes, and nothing confirms
// their condition. The world compares each decision that stands with the one that would be made.
func TestADecisionStandsWhileItsConditionIsData(t *testing.T) {
	c := modelConfig()
	doubts(c)
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			for _, n := range nodeNames[:4] {
				w.loseMonitor(n)
			}
		})
		w.pass(2 * time.Minute)
		w.do(func() {
			for _, n := range nodeNames[:4] {
				w.breakDown(n, 9)
				w.post(n, remediations.StatusFiring)
			}
		})
		w.pass(staleAfter - 3*time.Minute)
		require.Positive(t, w.heldAs(remediations.ReasonFleetUnhealthy))
		require.Positive(t, at(w, func() int { return w.stands }))
		require.Zero(t, w.heldAs(remediations.ReasonNotWitnessed))
		w.pass(2 * time.Minute)
		require.Positive(t, w.heldAs(remediations.ReasonNotWitnessed))
	})
}
