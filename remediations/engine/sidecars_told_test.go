package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestEachChangeOfSidecarReadinessIsOneEvent: requirement S0-10. The Event is on the pod and on its
// owner. States between False and True need no Event, so a change through Unknown is reported as
// one change.
func TestEachChangeOfSidecarReadinessIsOneEvent(t *testing.T) {
	both := []string{"Pod/" + podName(0), "SeiNode/p00"}
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.pod(podName(0)).hold("SeiNode sei/p00 is paused"); w.closeOn("n0") })
		w.pass(10 * time.Minute)
		require.Equal(t, both, w.eventsOf("SidecarReadinessLost"))
		require.Empty(t, w.eventsOf("SidecarReadinessRestored"))
		w.do(func() { w.pod(podName(0)).hide(true) })
		w.pass(10 * time.Minute)
		w.do(func() { w.pod(podName(0)).hide(false) })
		w.pass(10 * time.Minute)
		require.Equal(t, both, w.eventsOf("SidecarReadinessLost"), "Unknown is no transition")
		w.do(func() { w.pod(podName(0)).hide(true) })
		w.pass(time.Minute)
		w.do(func() { w.pod(podName(0)).hide(false); w.pod(podName(0)).letGo(); w.pod(podName(0)).hold("") })
		w.pass(16 * time.Second)
		require.Equal(t, both, w.eventsOf("SidecarReadinessRestored"))
		w.pass(5 * time.Minute)
		requireNoTrace(t, w)

		w.do(func() { w.closeOn("n0") })
		w.pass(5 * time.Minute)
		require.Equal(t, slices.Concat(both, both), w.eventsOf("SidecarReadinessLost"), "the next one is another")
		require.Equal(t, slices.Concat(both, both), w.eventsOf("SidecarReadinessRestored"))
		require.Equal(t, []string{"Pod/" + podName(0)}, w.eventsOf("RepairRecovered"))
	})
}

// TestARestartDoesNotRepeatThatReadinessWasLost: the record shows that the sidecar waited before.
// So the new leader reports only that the sidecar is ready again.
func TestARestartDoesNotRepeatThatReadinessWasLost(t *testing.T) {
	both := []string{"Pod/" + podName(0), "SeiNode/p00"}
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.pod(podName(0)).wedged = true; w.closeOn("n0") })
		w.pass(5 * time.Minute)
		require.Equal(t, both, w.eventsOf("SidecarReadinessLost"))
		w.restart(w.config)
		w.pass(5 * time.Minute)
		require.Equal(t, both, w.eventsOf("SidecarReadinessLost"))
		require.Empty(t, w.eventsOf("SidecarReadinessRestored"))
		w.do(w.mendSidecars)
		w.pass(5 * time.Minute)
		require.Equal(t, both, w.eventsOf("SidecarReadinessRestored"))
	})
}

// TestNeverSeenWaitingIsNeverRestored: a sidecar that was never observed at 503 is not reported as
// restored.
func TestNeverSeenWaitingIsNeverRestored(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.pod(podName(0)).close(); w.pod(podName(0)).hide(true); w.postPod(podName(0)) })
		w.pass(time.Minute)
		w.do(func() { w.pod(podName(0)).hide(false); w.pod(podName(0)).letGo() })
		w.pass(time.Minute)
		require.Empty(t, w.eventsOf("SidecarReadinessLost"))
		require.Empty(t, w.eventsOf("SidecarReadinessRestored"))
	})
}

// TestObservedSidecarsAreReported: requirement S0-12, observe first.
func TestObservedSidecarsAreReported(t *testing.T) {
	c := sidecarConfig()
	c.Policies[1].Mode = remediations.ModeObserve
	inGates(t, c, 3, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.closeOn("n0") })
		w.pass(time.Hour)
		require.Zero(t, w.approvalCount())
		require.Len(t, w.eventsOf("RepairHeld"), 3, "each would be approved")
		for _, e := range w.toldOf("RepairHeld") {
			if e.About != nil { // not an Event about the whole fleet
				require.Equal(t, string(remediations.ReasonObserving), e.Action, "the pod has one target, so the repair's ID is not needed")
			}
		}
		require.Len(t, w.eventsOf("RepairObserved"), 3)
		require.Len(t, w.eventsOf("SidecarReadinessLost"), 6)
		w.do(func() { require.Empty(t, w.sidecarRecords()) })
		require.Equal(t, []remediations.Outcome{remediations.OutcomeObserved, remediations.OutcomeObserved, remediations.OutcomeObserved}, w.sidecarOutcomes())
	})
}

// TestSidecarsAreCounted: the metrics count repairs by phase, holds by reason, steps by outcome,
// and ends.
func TestSidecarsAreCounted(t *testing.T) {
	inGates(t, sidecarConfig(), 4, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(16 * time.Second)
		repairs := func(p remediations.Phase) float64 {
			return testutil.ToFloat64(i.engine.metrics.repairs.WithLabelValues(sidecarPolicy, string(p)))
		}
		holds := func(r remediations.Reason) float64 {
			return testutil.ToFloat64(i.engine.metrics.holds.WithLabelValues(sidecarPolicy, string(r)))
		}
		ended := func(o remediations.Outcome) float64 {
			return testutil.ToFloat64(i.engine.metrics.ended.WithLabelValues(sidecarPolicy, string(o)))
		}
		w.do(func() {
			w.pod(podName(0)).wedged = true
			w.pod(podName(1)).hold("SeiNode is paused")
			w.pod(podName(2)).failing = true
			w.closeOn("n0")
		})
		w.pass(30 * time.Second)
		require.InDelta(t, 1, repairs(remediations.PhaseVerifying), 0)
		require.InDelta(t, 1, holds(remediations.ReasonSidecarHeld), 0)
		require.InDelta(t, 1, holds(remediations.ReasonSidecarUnknown), 0)
		require.InDelta(t, 1, ended(remediations.OutcomeRecovered), 0)
		require.InDelta(t, 2, testutil.ToFloat64(i.engine.metrics.steps.WithLabelValues("mark-ready", "accepted")), 0)
		w.pass(5 * time.Minute)
		require.InDelta(t, 1, repairs(remediations.PhaseExhausted), 0)
		require.Zero(t, repairs(remediations.PhaseVerifying))
		require.InDelta(t, 1, ended(remediations.OutcomeExhausted), 0)
		w.do(func() { w.mendSidecars() })
		w.pass(5 * time.Minute)
		for _, p := range []remediations.Phase{remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted} {
			require.Zero(t, repairs(p), p)
		}
		for _, r := range remediations.Reasons {
			require.Zero(t, holds(r), r)
		}
		require.InDelta(t, 3, ended(remediations.OutcomeRecovered), 0)
		requireNoTrace(t, w)
	})
}

// TestReadySidecarIsHeldByNothing: its alert outlives the cure for a while, and no warning is sent
// about that.
func TestReadySidecarIsHeldByNothing(t *testing.T) {
	inGates(t, sidecarConfig(), 3, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.closeOn("n0") })
		w.pass(5 * time.Minute)
		require.Len(t, w.eventsOf("RepairRecovered"), 3)
		require.Empty(t, w.eventsOf("RepairHeld"))
	})
}
