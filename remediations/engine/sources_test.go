package engine

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
)

func (i *instance) blindBy(cause string) bool {
	return testutil.ToFloat64(i.engine.metrics.blind.WithLabelValues(cause)) == 1
}

// TestALookThatNeverEndsIsGivenUp: the next poll looks again.
func TestALookThatNeverEndsIsGivenUp(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.lookTakes = 9 * time.Minute })
		w.pass(20 * time.Second) // a look has begun
		w.do(func() { w.lookTakes = 0; w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		require.NotEmpty(t, w.toldOf("AlertmanagerDown"), "it counts as no answer")
	})
}

// TestASilentWatchIsReportedAndHolds: Drydock detects by its own writes that the cache of Nodes is
// behind.
func TestASilentWatchIsReportedAndHolds(t *testing.T) {
	c := modelConfig()
	c.Policies[0].For = 2 * time.Minute
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(time.Minute)
		require.False(t, i.blindBy(blindNodes), "the control")
		w.do(func() { i.still = true; w.ail("n0", 1) })
		w.pass(5 * time.Minute)
		require.Zero(t, w.callCount())
		require.True(t, i.blindBy(blindNodes))
		require.Contains(t, at(w, func() string { return w.book().Status.Blind }), "the watch of Nodes is behind")
		w.do(func() { i.still = false })
		w.pass(20 * time.Second)
		require.False(t, i.blindBy(blindNodes))
		require.Equal(t, 1, w.callCount(), "the alert's time did not begin again with each poll")
	})
}

// TestStatusReportsUnansweredQueriesWithoutAWatchdog: a process that has never had an answer
// reports it, too. An answer of one Alertmanager is enough to end it.
func TestStatusReportsUnansweredQueriesWithoutAWatchdog(t *testing.T) {
	for name, watchdog := range map[string]bool{"no Watchdog is configured": false, "the Watchdog was never seen": true} {
		t.Run(name, func(t *testing.T) {
			c := modelConfig()
			c.Watchdog = watchdog
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				w.do(func() { w.replicas[0].dead, w.replicas[1].dead = true, true })
				i := w.start()
				w.pass(5 * time.Minute)
				require.True(t, i.blindBy(blindAlertmanager))
				require.Contains(t, at(w, func() string { return w.book().Status.Blind }), "no Alertmanager has answered since 2000-01-01T00:00:")
				w.do(func() { w.replicas[1].dead = false })
				w.pass(5 * time.Minute)
				require.False(t, i.blindBy(blindAlertmanager), "the control")
				require.Empty(t, at(w, func() string { return w.book().Status.Blind }))
			})
		})
	}
}

// TestAlertmanagersThatDoNotAnswerAreReportedAndHold: the metric reports them, and disruptive steps
// are held. One that answers is enough.
func TestAlertmanagersThatDoNotAnswerAreReportedAndHold(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.do(func() { w.replicas[0].dead = true })
		w.pass(5 * time.Minute)
		require.False(t, i.blindBy(blindAlertmanager), "the control")
		w.do(func() { w.replicas[1].dead = true; w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		w.pass(5 * time.Minute)
		require.True(t, i.blindBy(blindAlertmanager))
		require.Zero(t, w.callCount())
		w.do(func() { w.replicas = [2]replicaState{} })
		require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }))
		require.False(t, i.blindBy(blindAlertmanager))
	})
}

// TestALedgerThatCannotBeReadIsReportedAndHolds: the metric reports it, and disruptive steps are
// held.
func TestALedgerThatCannotBeReadIsReportedAndHolds(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(time.Minute)
		require.False(t, i.blindBy(blindLedger), "the control")
		w.do(func() { w.always["load"], w.always["save"] = "lost", "lost"; w.ail("n0", 1) })
		w.pass(5 * time.Minute)
		require.True(t, i.blindBy(blindLedger))
		require.Zero(t, w.callCount())
		w.do(func() { clear(w.always) })
		require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) == 1 }))
		require.False(t, i.blindBy(blindLedger))
	})
}

// TestANodeThatCannotStoreAnAlertIsReportedAlone: it does not hold the other nodes.
func TestANodeThatCannotStoreAnAlertIsReportedAlone(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(time.Minute)
		require.False(t, i.blindBy(blindWrites), "the control")
		w.do(func() {
			adopt := i.engine.Adopt
			i.engine.Adopt = func(n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result) {
				if n.Name == "n0" {
					return a, intake.Accepted
				}
				return adopt(n, a)
			}
			w.ail("n0", 1)
		})
		w.pass(2 * time.Minute)
		require.True(t, i.blindBy(blindWrites))
		require.False(t, i.blindBy(blindNodes))
		require.Len(t, w.toldOf("NodeUnwritable"), 1)
		require.Contains(t, at(w, func() string { return w.book().Status.Unwritten["n0"] }), "alert NodeNotReady cannot be written on the Node since ")
		w.do(func() { w.ail("n1", 1) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 && w.calls[0].node == "n1" }))
	})
}

// TestAnAlertThatItsNodeCannotStoreIsReportedWithTheReason: the reason is in the Event and in the
// ledger.
func TestAnAlertThatItsNodeCannotStoreIsReportedWithTheReason(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		var since time.Time
		w.do(func() {
			since = time.Now()
			w.writes = func() Writes {
				return Writes{Refused: map[string]Refusal{"n0": {Since: since, Why: "metadata.annotations: Too long"}, "gone": {Since: since}}}
			}
		})
		i := w.start()
		w.pass(30 * time.Second)
		require.False(t, i.blindBy(blindWrites), "a write may fail for a moment")
		w.do(func() {
			adopt := i.engine.Adopt
			i.engine.Adopt = func(n *corev1.Node, a remediations.Alert) (remediations.Alert, intake.Result) {
				if n.Name == "n0" {
					return a, intake.Accepted
				}
				return adopt(n, a)
			}
			w.ail("n0", 1)
		})
		w.pass(2 * time.Minute)
		require.True(t, i.blindBy(blindWrites))
		require.False(t, i.blindBy(blindDenied), "the other Nodes take writes")
		told := w.toldOf("NodeUnwritable")
		require.Len(t, told, 1)
		require.Contains(t, told[0].Note, "metadata.annotations: Too long")
		w.do(func() {
			require.Contains(t, w.book().Status.Unwritten["n0"], "metadata.annotations: Too long")
			require.Len(t, w.book().Status.Unwritten, 1, "a Node that is gone is not named")
		})
	})
}

// TestWritesThatTheClusterRefusesAreReportedAndHold: a repair begins when the writes are accepted
// again. Writes that are only limited hold nothing.
func TestWritesThatTheClusterRefusesAreReportedAndHold(t *testing.T) {
	const why = "the API server refuses Drydock's own annotations and labels on Nodes: ValidatingAdmissionPolicy 'other' denied request"
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() { w.writes = func() Writes { return Writes{Limited: []string{"no cordon"}} } })
		i := w.start()
		w.pass(time.Minute)
		require.False(t, i.blindBy(blindDenied), "the control")
		w.do(func() {
			require.Equal(t, []string{"no cordon"}, w.book().Status.Limited)
			w.writes = func() Writes { return Writes{Denied: why} }
			w.ail("n0", 1)
			w.post("n0", remediations.StatusFiring)
		})
		w.pass(2 * time.Minute)
		require.Zero(t, w.callCount())
		require.True(t, i.blindBy(blindDenied))
		require.Len(t, w.toldOf("WritesDenied"), 1)
		w.do(func() {
			require.Empty(t, w.book().Status.Blind, "Drydock sees all the same")
			require.Equal(t, why, w.book().Status.Denied)
			require.Contains(t, w.book().Status.Holds[remediations.ReasonWritesDenied], why)
			w.writes = func() Writes { return Writes{} }
		})
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
		require.False(t, i.blindBy(blindDenied))
		require.Len(t, w.toldOf("WritesTaken"), 1)
	})
}

// TestAnAlertmanagerWithAClockThatIsAheadHidesNoCure: its times are ignored, and those of the other
// one count.
func TestAnAlertmanagerWithAClockThatIsAheadHidesNoCure(t *testing.T) {
	for name, ahead := range map[string][2]bool{"one of two": {true, false}, "none, the control": {}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.replicas[0].ahead, w.replicas[1].ahead = ahead[0], ahead[1] })
				sickNode(t, w)
				w.pass(5 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestEachSourceHasTheTimeOfItsLastAnswer: people can read its age there.
func TestEachSourceHasTheTimeOfItsLastAnswer(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		w.pass(5 * time.Minute)
		for _, source := range sources {
			at := testutil.ToFloat64(i.engine.metrics.sources.WithLabelValues(source))
			require.InDelta(t, float64(time.Now().Unix()), at, 300, source)
		}
	})
}
