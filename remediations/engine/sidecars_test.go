package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// inGates runs f on a world of six nodes, with that many pods on n0, each behind a gated sidecar.
func inGates(t *testing.T, c *remediations.Config, pods int, f func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.host("none", "n5") // the world has gates although no pod waits behind one
		for i := range pods {
			w.host(podName(i), "n0")
		}
		f(t, w)
	})
}

func podName(i int) string { return fmt.Sprintf("p%02d-0", i) }

func (w *world) approvalCount() int { return at(w, func() int { return len(w.gates.approvals) }) }

func (w *world) sidecarOutcomes() (out []remediations.Outcome) {
	w.do(func() {
		for _, e := range w.gates.ended {
			out = append(out, e.Outcome)
		}
	})
	return out
}

func (w *world) sidecarOf(name string) *remediations.Record {
	return at(w, func() *remediations.Record {
		for _, n := range w.nodes {
			if r := modelRegistry.ReadJournal(n).Records[podKey(name)]; r != nil {
				return r
			}
		}
		return nil
	})
}

// allOpen reports whether every gate is open.
func (w *world) allOpen() bool {
	for _, name := range w.podNames() {
		if !w.pod(name).open {
			return false
		}
	}
	return true
}

// eventsOf are the Events with the reason, as "Kind/name".
func (w *world) eventsOf(reason string) (out []string) {
	w.do(func() {
		for _, e := range w.told {
			if e.Reason == reason && e.About != nil {
				out = append(out, e.About.Kind+"/"+e.About.Name)
			}
		}
	})
	return out
}

func requireNoTrace(t *testing.T, w *world) {
	t.Helper()
	w.do(func() {
		require.Empty(t, w.sidecarRecords(), "a record only while something is done")
		for name, n := range w.nodes {
			require.Empty(t, remediations.AlertsOn(n.Annotations), name)
			require.NotContains(t, n.Labels, remediations.PhaseLabel)
			require.False(t, n.Spec.Unschedulable)
		}
		require.Empty(t, w.calls, "nothing was done to a node")
		require.Empty(t, mustLedger(w).Slots)
		require.Empty(t, mustLedger(w).Repairs)
		require.Empty(t, w.instances[len(w.instances)-1].engine.targets)
	})
}

// TestReplacedPodIsApprovedAgain is S0: the pod was replaced, its sidecar waits, and is ready
// seconds after the alert arrives.
func TestReplacedPodIsApprovedAgain(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.replacePod(podName(0), "n0"); w.postPod(podName(0)) })
		require.True(t, w.until(10*time.Second, func() bool { return w.pod(podName(0)).open }))
		w.pass(2 * time.Minute)
		require.Equal(t, 1, w.approvalCount(), "accepted, and not submitted twice")
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.sidecarOutcomes())
		requireNoTrace(t, w)
		e := remediations.DecodeHistory(w.nodeOf("n0").Annotations[remediations.HistoryKey])
		require.Len(t, e, 1)
		require.Equal(t, "sei/"+podName(0), e[0].Pod)
	})
}

// TestThirtySidecarsOfARebootedNode: all are ready again within one alert cycle. They follow one
// after the other, and none waits for the proof of another.
func TestThirtySidecarsOfARebootedNode(t *testing.T) {
	for name, arrive := range map[string]bool{"posted": true, "only the poll knows": false} {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 30, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.closeOn("n0")
					for i := range 30 {
						if arrive {
							w.postPod(podName(i))
						}
					}
				})
				began := time.Now()
				require.True(t, w.until(time.Minute, w.allOpen))
				t.Logf("all ready after %s", time.Since(began))
				w.pass(3 * time.Minute)
				require.Equal(t, 30, w.approvalCount(), "each once")
				w.do(func() {
					require.LessOrEqual(t, w.gates.most, 10, "limits.sidecars.concurrent")
					require.Len(t, w.gates.ended, 30)
				})
				requireNoTrace(t, w)
			})
		})
	}
}

// TestSlowSidecarsAreStillOneAfterTheOther: no sidecar waits for another one's proof.
func TestSlowSidecarsAreStillOneAfterTheOther(t *testing.T) {
	c := sidecarConfig()
	c.Limits.Sidecars = 3
	inGates(t, c, 12, func(t *testing.T, w *world) {
		for i := range 6 {
			w.host(fmt.Sprintf("q%02d-0", i), "n1")
		}
		w.gates.mood.after = time.Second
		w.gates.lookTakes = 500 * time.Millisecond
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.closeOn("n0"); w.closeOn("n1") })
		require.True(t, w.until(2*time.Minute, w.allOpen))
		w.pass(3 * time.Minute)
		require.Equal(t, 18, w.approvalCount())
		w.do(func() {
			last := map[string]time.Time{}
			for _, a := range w.gates.approvals {
				require.GreaterOrEqual(t, a.at.Sub(last[a.node]), time.Second, "the call before is over")
				last[a.node] = a.at
			}
			require.LessOrEqual(t, w.gates.most, 3)
			require.Greater(t, w.gates.most, 1, "those of two nodes go on beside each other")
		})
		requireNoTrace(t, w)
	})
}

// TestKnownTaskIsSilentlyIgnored: a sidecar remembers every task for ever, so each attempt must
// have another.
func TestKnownTaskIsSilentlyIgnored(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		for range 5 {
			w.do(func() { w.replacePod(podName(0), "n0"); w.postPod(podName(0)) })
			w.pass(5 * time.Minute)
			require.True(t, at(w, w.allOpen))
		}
		require.Equal(t, 5, w.approvalCount())
		require.Len(t, at(w, func() map[string]bool { return w.pod(podName(0)).tasks }), 5)
		requireNoTrace(t, w)
	})
}

// TestSidecarsOfAnotherEngine: the first engine is suspended between its intent and its approval,
// and another one leads.
func TestSidecarsOfAnotherEngine(t *testing.T) {
	for _, where := range []string{"write n0 sidecar Acting", "approve"} {
		t.Run(where, func(t *testing.T) {
			inGates(t, sidecarConfig(), 3, func(t *testing.T, w *world) {
				first := w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					first.stall, first.stallAt = 40*time.Second, where
					w.in(42*time.Second, first.cancel)
					w.closeOn("n0")
				})
				w.pass(16 * time.Second)
				w.start()
				w.pass(10 * time.Minute)
				require.True(t, at(w, w.allOpen))
				requireNoTrace(t, w)
			})
		})
	}
}

// TestSidecarsOutcomeSurvivesAStop: an engine that stops in good order puts the outcome of the
// approval on record.
func TestSidecarsOutcomeSurvivesAStop(t *testing.T) {
	inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.gates.mood.after = 2 * time.Second; w.pod(podName(0)).wedged = true; w.closeOn("n0") })
		require.True(t, w.until(time.Minute, func() bool { return len(w.gates.approvals) == 1 }))
		w.do(w.last().cancel)
		w.pass(5 * time.Second)
		r := w.sidecarOf(podName(0))
		require.Equal(t, remediations.PhaseVerifying, r.Phase)
		require.Equal(t, remediations.CallAccepted, r.Intent.Outcome)
	})
}
