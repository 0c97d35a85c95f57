package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

func TestNodeThatARebootCuresIsRecovered(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(10*time.Second, func() bool { return len(w.calls) == 1 }), "within seconds of the post")
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, 1, w.callCount())
		require.Empty(t, w.slots(t))
		n := w.nodes["n0"]
		require.NotContains(t, n.Annotations, remediations.NodeRepairKey)
		require.NotContains(t, n.Labels, remediations.PhaseLabel)
		require.False(t, n.Spec.Unschedulable)
	})
}

func TestAlertThatOnlyThePollSawIsRepairedToo(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 1) })
		require.True(t, w.until(20*time.Second, func() bool { return len(w.calls) == 1 }))
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}

func TestNodeThatNothingCuresIsCordonedAndLeftToAPerson(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 99) })
		w.pass(12 * time.Hour)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
		require.Equal(t, 2, w.callCount())
		require.Empty(t, w.slots(t))
		require.True(t, w.nodeOf("n0").Spec.Unschedulable)
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)

		w.do(func() {
			w.heal("n0")
			w.edit("n0", func(n *corev1.Node) { n.Annotations[remediations.ResetKey] = "true" })
		})
		w.pass(5 * time.Minute)
		require.False(t, w.nodeOf("n0").Spec.Unschedulable, "Drydock takes its own cordon back")
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		require.Nil(t, w.recordOf("n0"))
	})
}

// TestCordonOfAPersonSurvivesAReset: managedFields show that another manager has set the cordon
// since.
func TestCordonOfAPersonSurvivesAReset(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 99) })
		require.True(t, w.until(time.Hour, func() bool { return w.nodes["n0"].Spec.Unschedulable }))
		w.do(func() {
			w.machines["n0"].cordonedBy = "a person"
			w.edit("n0", func(n *corev1.Node) { n.Annotations[remediations.ResetKey] = "true" })
		})
		w.pass(5 * time.Minute)
		require.True(t, w.nodeOf("n0").Spec.Unschedulable)
		require.Equal(t, remediations.ReasonCordonedByOther, w.recordOf("n0").Hold.Reason, "and means hands off")
	})
}

func TestObserveModeSpeaksAndDoesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		mode  remediations.Mode
		calls int
	}{
		"observe": {remediations.ModeObserve, 0},
		"enforce": {remediations.ModeEnforce, 2},
	} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Policies[0].Mode = c.mode
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 99); w.ail("n1", 99) })
				w.pass(8 * time.Minute)
				if c.mode == remediations.ModeObserve {
					require.Equal(t, remediations.ReasonObserving, w.recordOf("n0").Hold.Reason)
					require.Nil(t, w.recordOf("n1"), "in observe mode the limits count the would-be repairs")
				}
				w.pass(7 * time.Minute)
				require.Equal(t, c.calls, w.callCount())
				if c.mode == remediations.ModeObserve {
					require.Nil(t, w.recordOf("n0"), "its step's wait is over")
					require.Equal(t, remediations.ReasonObserving, w.recordOf("n1").Hold.Reason, "and the next one has its place")
				}
			})
		})
	}
}

func TestOneNodeAtATime(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			for _, n := range []string{"n0", "n1", "n2"} {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		w.pass(time.Minute)
		require.Equal(t, 1, w.callCount())
		w.pass(20 * time.Minute)
		require.Equal(t, 3, w.callCount())
		require.Len(t, w.outcomes(), 3)
	})
}

// TestStormStopsEverything: if five of six nodes fail at once, the nodes are not the cause.
func TestStormStopsEverything(t *testing.T) {
	for name, c := range map[string]struct{ sick, calls int }{"a storm": {5, 0}, "two nodes": {2, 2}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() {
					for _, n := range []string{"n0", "n1", "n2", "n3", "n4"}[:c.sick] {
						w.ail(n, 1)
					}
				})
				w.start()
				w.pass(9 * time.Minute)
				require.Equal(t, c.calls, w.callCount())
			})
		})
	}
}

// TestPersonsWord: with any hold that a person sets before the intent is written, nothing is done;
// without a hold, the repair begins.
func TestPersonsWord(t *testing.T) {
	annotate := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[key] = value }
	}
	for name, c := range map[string]struct {
		say   func(*corev1.Node)
		calls int
	}{
		"nothing":           {func(*corev1.Node) {}, 1},
		"pause":             {annotate(remediations.PauseKey, "true"), 0},
		"a pause unread":    {annotate(remediations.PauseKey, "perhaps"), 0},
		"break the glass":   {annotate(remediations.BreakGlassKey, "ticket 1"), 0},
		"exclude":           {func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" }, 0},
		"exclude: false":    {func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "false" }, 1},
		"cordon":            {func(n *corev1.Node) { n.Spec.Unschedulable = true }, 0},
		"a broken record":   {annotate(remediations.NodeRepairKey, "{}"), 0},
		"a pause that ends": {annotate(remediations.PauseKey, "1999-12-31T00:00:00Z"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.edit("n0", c.say); w.ail("n0", 1) })
				w.pass(4 * time.Minute)
				require.Equal(t, c.calls, w.callCount())
			})
		})
	}
}

func TestSilenceBetweenTwoAttemptsHoldsTheSecond(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 2) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		w.do(func() { w.machines["n0"].silenced = true })
		w.pass(time.Hour)
		require.Equal(t, 1, w.callCount())
		require.Equal(t, remediations.ReasonSilenced, w.recordOf("n0").Hold.Reason)
		require.Empty(t, w.slots(t), "what waits occupies nobody's place")
		w.do(func() { w.machines["n0"].silenced = false })
		w.pass(5 * time.Minute)
		require.Equal(t, 2, w.callCount())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
	})
}
