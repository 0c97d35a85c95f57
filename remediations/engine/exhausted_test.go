package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
)

// ranOut is a world where the repair of n0 ran out of steps: two reboots did not cure it.
func ranOut(t *testing.T, w *world) {
	t.Helper()
	w.start()
	w.do(func() { w.ail("n0", 99) })
	require.True(t, w.until(time.Hour, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseExhausted }))
	require.True(t, w.nodeOf("n0").Spec.Unschedulable)
}

// TestAnExhaustedNodeThatIsWellDoesNotCountAsUnhealthy: people are also asked once to reset it.
// While the node is unhealthy it counts, and when it fails again it counts again.
func TestAnExhaustedNodeThatIsWellDoesNotCountAsUnhealthy(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		ranOut(t, w)
		counted := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			fires := func(string) bool { return false } // a firing alert counts anyway
			unhealthy, _ := fleet.New(w.config, slices.Collect(maps.Values(w.nodes)), &ledger.Ledger{}, fires, time.Now()).Health()
			return unhealthy
		}
		w.pass(5 * time.Minute)
		require.Equal(t, 1, counted(), "the control: it is ill")
		require.Empty(t, w.toldOf("NodeWellAgain"))

		w.do(func() { w.heal("n0") })
		w.pass(20 * time.Minute)
		require.Equal(t, 0, counted())
		require.Len(t, w.toldOf("NodeWellAgain"), 1)
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase, "a person must look")
		require.True(t, w.nodeOf("n0").Spec.Unschedulable)

		w.restart(w.config)
		w.pass(20 * time.Minute)
		require.Equal(t, 0, counted(), "another leads")
		require.Len(t, w.toldOf("NodeWellAgain"), 1, "once")

		w.do(func() { w.breakDown("n0", 99) })
		w.pass(10 * time.Minute)
		require.Equal(t, 1, counted())
		require.Zero(t, w.recordOf("n0").WellSince)
		require.Equal(t, 2, w.callCount())
	})
}

// TestAnExhaustedRepairEndsByItselfWhereItsPolicySaysSo: the repair ends once the node has been
// healthy for endWhenWell without a break. Its cordon is removed, and a later fault is repaired
// from the first step. The repair still counts against limits.repairsPerNode, and as failed for its
// policy.
func TestAnExhaustedRepairEndsByItselfWhereItsPolicySaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		after   time.Duration
		window  time.Duration
		repairs int
		breaks  bool
		ends    bool
		calls   int
	}{
		"off, the control":                  {repairs: 9, calls: 2},
		"well for long enough":              {after: 30 * time.Minute, repairs: 9, ends: true, calls: 3},
		"ill in between":                    {after: 30 * time.Minute, repairs: 9, breaks: true, calls: 2},
		"ill again within relapseWindow":    {after: 30 * time.Minute, window: 2 * time.Hour, repairs: 9, ends: true, calls: 2},
		"no repair is left for the machine": {after: 30 * time.Minute, repairs: 1, ends: true, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			c.Policies[0].EndWhenWell, c.Policies[0].RelapseWindow, c.Limits.RepairsPerNode = test.after, test.window, test.repairs
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				ranOut(t, w)
				w.do(func() { w.heal("n0") })
				w.pass(25 * time.Minute)
				require.NotNil(t, w.recordOf("n0"), "not yet")
				if test.breaks {
					w.do(func() { w.breakDown("n0", 99) })
					w.pass(2 * time.Minute)
					w.do(func() { w.heal("n0") })
				}
				w.pass(10 * time.Minute)
				if !test.ends {
					require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
					require.True(t, w.nodeOf("n0").Spec.Unschedulable)
					require.Equal(t, test.calls, w.callCount())
					return
				}
				require.Nil(t, w.recordOf("n0"))
				require.False(t, w.nodeOf("n0").Spec.Unschedulable)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted, remediations.OutcomeSelfRecovered}, w.outcomes())
				l := at(w, func() *ledger.Ledger { return mustLedger(w) })
				require.Equal(t, 1, l.Status.Exhausted["node-not-ready"], "its steps cured nothing: %v", l.Status.Ends)
				require.Len(t, l.Repairs[ledger.Machine(w.nodeOf("n0"))], 1)
				for machine, cures := range l.Cures {
					for _, c := range cures {
						require.False(t, c.Relapsed, "%s: that the plan ran out is forgotten: %v", machine, c)
					}
				}
				w.pass(30 * time.Minute)
				w.do(func() { w.ail("n0", 1) })
				w.pass(20 * time.Minute)
				require.Equal(t, test.calls, w.callCount())
			})
		})
	}
}
