package engine

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// gpuSeries are the gauge's series in a scrape.
func gpuSeries(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "drydock_node_expected_gpus" {
			continue
		}
		for _, m := range f.GetMetric() {
			require.Len(t, m.GetLabel(), 1)
			require.Equal(t, "node", m.GetLabel()[0].GetName())
			out[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return out
}

func TestGPUGaugeFollowsTheNodes(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := &remediations.Config{}
	m := newMetrics(reg, c)
	require.Empty(t, gpuSeries(t, reg), "before this replica leads")

	roster := fleet.NewRoster(c)
	pass := func(gpus map[string]int) {
		var nodes []*corev1.Node
		for name, count := range gpus {
			labels := map[string]string{signs.GPUCountLabel: strconv.Itoa(count)}
			nodes = append(nodes, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
				Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}},
			})
		}
		roster.Read(nodes)
		m.set(c, newTally(), roster.Fleet(&ledger.Ledger{}, false, time.Now()), nil)
	}
	pass(map[string]int{"gpu1": 8, "gpu2": 4})
	require.Equal(t, map[string]float64{"gpu1": 8, "gpu2": 4}, gpuSeries(t, reg))

	pass(map[string]int{"gpu1": 7})
	require.Equal(t, map[string]float64{"gpu1": 7}, gpuSeries(t, reg), "the label changed, and a node that is gone takes its series along")

	seen := &ledger.Ledger{GPUs: map[string]int{ledger.GPUMachine(roster.Node("gpu1")): 8}}
	m.set(c, newTally(), roster.Fleet(seen, false, time.Now()), nil)
	require.Equal(t, map[string]float64{"gpu1": 8}, gpuSeries(t, reg), "the ledger has seen more")
	seen.GPUs = nil
	m.set(c, newTally(), roster.Fleet(seen, false, time.Now()), nil)
	require.Equal(t, map[string]float64{"gpu1": 7}, gpuSeries(t, reg), "a person reset the number")

	m.reset()
	require.Empty(t, gpuSeries(t, reg), "a replica that no longer leads shows none")
	pass(map[string]int{"gpu1": 8})
	require.Equal(t, map[string]float64{"gpu1": 8}, gpuSeries(t, reg), "nor does it forget to, when it leads again")
}

// hasGPUs sets on the node how many GPUs its machine has, and offers.
func (w *world) hasGPUs(node string, count int) {
	w.edit(node, func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[signs.GPUCountLabel] = strconv.Itoa(count)
		n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(count), resource.DecimalSI)}
	})
}

// remembersGPUs is how many GPUs the node's machine had according to the ledger.
func (w *world) remembersGPUs(node string) int {
	n := w.nodeOf(node)
	return at(w, func() int { return w.book().GPUs[ledger.GPUMachine(n)] })
}

// TestAMachineThatLostAGPUBeforeItsRepairIsNotCured: the label and the allocatable GPUs of n0
// decreased together before any alert fired. n1 always had seven GPUs, and is the control.
func TestAMachineThatLostAGPUBeforeItsRepairIsNotCured(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.hasGPUs("n0", 8); w.hasGPUs("n1", 7) })
		w.pass(2 * time.Minute)
		require.Equal(t, []int{8, 7, 0}, []int{w.remembersGPUs("n0"), w.remembersGPUs("n1"), w.remembersGPUs("n2")})

		w.do(func() { w.hasGPUs("n0", 7) })
		w.pass(2 * time.Minute)
		w.restart(w.config)
		w.pass(2 * time.Minute)
		require.Equal(t, 8, w.remembersGPUs("n0"), "another leads")

		w.do(func() { w.ail("n1", 1) })
		require.True(t, w.until(time.Hour, func() bool { return w.record("n1") == nil && len(w.calls) == 1 }), "the control is cured")
		w.pass(10 * time.Minute)
		w.do(func() { w.ail("n0", 1) })
		require.True(t, w.until(time.Hour, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseExhausted }))
		require.Contains(t, w.recordOf("n0").Note+w.toldOf("RepairExhausted")[0].Note, "7 of the 8 GPUs that it had")

		w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
		w.pass(2 * time.Minute)
		require.Equal(t, 7, w.remembersGPUs("n0"), "a person accepts the number")
	})
}

// TestAResetAcceptsFewerGPUsWithoutARepair: if a GPU was removed on purpose, no repair must fail
// first. A reset of a machine with all its GPUs is refused, which is the control.
func TestAResetAcceptsFewerGPUsWithoutARepair(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.hasGPUs("n0", 8) })
		w.pass(2 * time.Minute)
		reset := func() {
			w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
			w.pass(2 * time.Minute)
			require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
		}
		reset()
		require.Len(t, w.toldOf("AnnotationInvalid"), 1)
		require.Equal(t, 8, w.remembersGPUs("n0"))

		w.do(func() { w.hasGPUs("n0", 6) })
		w.pass(2 * time.Minute)
		reset()
		require.Len(t, w.toldOf("AnnotationInvalid"), 1, "it is accepted")
		require.Equal(t, 6, w.remembersGPUs("n0"))
	})
}

// TestGPUsAreRememberedOfTheMachine: another machine under the name of the Node starts with no
// number. A Node of the same machine keeps its number, also if the Node was away for a while.
func TestGPUsAreRememberedOfTheMachine(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.hasGPUs("n0", 8) })
		w.pass(2 * time.Minute)
		w.do(func() { w.remake("n0", "civo://m0"); w.hasGPUs("n0", 7) })
		w.pass(2 * time.Minute)
		require.Equal(t, 8, w.remembersGPUs("n0"), "the control: the same machine")

		w.do(func() { w.remake("n0", "civo://another"); w.hasGPUs("n0", 7) })
		w.pass(2 * time.Minute)
		require.Equal(t, 7, w.remembersGPUs("n0"))

		w.do(func() { w.leave("n0") })
		w.pass(time.Minute)
		w.do(func() { w.hasGPUs("n1", 4) })
		w.pass(2 * time.Minute)
		w.do(func() { w.join("n0", "civo://another"); w.hasGPUs("n0", 6) })
		w.pass(2 * time.Minute)
		require.Equal(t, []int{7, 4}, []int{w.remembersGPUs("n0"), w.remembersGPUs("n1")}, "its Node was away while another machine's number grew")
	})
}

// TestTheLedgerIsWrittenForAGPUOnlyWhenANumberGrows: kubelets and device plugins change these
// numbers often.
func TestTheLedgerIsWrittenForAGPUOnlyWhenANumberGrows(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() { w.hasGPUs("n0", 7) })
		w.pass(10 * time.Minute)
		written := func() int { return at(w, func() int { return w.ledgerRV }) }
		before := written()
		for range 5 {
			w.do(func() { w.hasGPUs("n0", 6) })
			w.pass(time.Minute)
			w.do(func() { w.hasGPUs("n0", 7) })
			w.pass(time.Minute)
		}
		require.Equal(t, before, written())
		w.do(func() { w.hasGPUs("n0", 8) })
		w.pass(time.Minute)
		require.Equal(t, before+1, written(), "the control")
	})
}

// TestAResetBetweenTwoAttemptsAcceptsFewerGPUs: the number that the person accepted proves the
// continued repair. Without the reset the repair ends as exhausted, which is the control.
func TestAResetBetweenTwoAttemptsAcceptsFewerGPUs(t *testing.T) {
	for _, reset := range []bool{true, false} {
		inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.hasGPUs("n0", 8) })
			w.pass(2 * time.Minute)
			w.do(func() { w.ail("n0", 2) })
			require.True(t, w.until(time.Hour, func() bool { r := w.record("n0"); return r != nil && r.Intent != nil && r.Intent.GPUs == 8 }))
			w.do(func() { w.hasGPUs("n0", 7); w.hold("n0", edit(remediations.PauseKey, "true")) })
			require.True(t, w.until(time.Hour, func() bool { return w.record("n0").Phase == remediations.PhasePending }), "it waits between two attempts")
			if reset {
				w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
				w.pass(2 * time.Minute)
				require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
				require.Equal(t, 7, w.recordOf("n0").Intent.GPUs)
				require.Equal(t, remediations.PhasePending, w.recordOf("n0").Phase, "the repair goes on")
			}
			w.do(func() { w.unhold("n0") })
			w.pass(2 * time.Hour)
			if reset {
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			} else {
				require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
			}
		})
	}
}

// TestTheExpectedNumberOfGPUsOutlivesALedgerThatCannotBeRead: an unreadable ledger must not end the
// alert about the lost GPU. The hold shows that the ledger is lost.
func TestTheExpectedNumberOfGPUsOutlivesALedgerThatCannotBeRead(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.do(func() { w.hasGPUs("n0", 8) })
		w.pass(2 * time.Minute)
		w.do(func() { w.hasGPUs("n0", 7) })
		w.pass(2 * time.Minute)
		expected := func() float64 { return gpuSeries(t, i.engine.Metrics.(prometheus.Gatherer))["n0"] }
		require.Equal(t, 8, int(expected()))
		w.do(func() { w.always["load"] = "lost"; w.ail("n1", 1) })
		w.pass(20 * time.Minute)
		require.Positive(t, w.heldAs(remediations.ReasonBlind))
		require.Equal(t, 8, int(expected()))
	})
}

// withoutGPUs refuses a ledger that has numbers of GPUs.
type withoutGPUs struct{ *still }

func (s withoutGPUs) Save(ctx context.Context, data map[string]string, version string) (string, error) {
	if data["gpus"] != "" {
		return "", errTooLong
	}
	return s.still.Save(ctx, data, version)
}

// TestGPUsThatCannotBeSavedCostNoDecision: the decisions about the nodes come first, with the
// ledger.
func TestGPUsThatCannotBeSavedCostNoDecision(t *testing.T) {
	t.Parallel()
	e, ctx := settled(t, 10, 1)
	w := e.Store.(*still)
	e.Store = withoutGPUs{w}
	n := w.nodes[5].DeepCopy()
	n.Labels[signs.GPUCountLabel], n.ResourceVersion = "8", "2"
	n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	w.nodes[5], w.changed = n, append(w.changed, n)
	decided := 0
	e.Decided = func(string, lifecycle.Decision) {
		decided++
		require.NotNil(t, e.ledger)
	}
	require.NotNil(t, e.ledger)
	e.pass(ctx)
	require.Equal(t, 1, decided)
	require.Equal(t, errTooLong, e.learnOut.err, "the control: the save was refused")
	require.NotNil(t, e.ledger)
}

// TestGPUsThatCannotBeSavedDelayNoRepair: the ledger is refused with the numbers, and accepted
// without them. The control has no such refusal.
func TestGPUsThatCannotBeSavedDelayNoRepair(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, refused := range []bool{false, true} {
		inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
			w.start()
			w.pass(time.Minute)
			w.do(func() { w.refusesGPUs = refused; w.hasGPUs("n5", 8) })
			w.pass(10 * time.Minute)
			began := time.Now()
			for _, n := range []string{"n0", "n1", "n2"} {
				calls := at(w, func() int { return len(w.calls) })
				w.do(func() { w.ail(n, 1); w.post(n, remediations.StatusFiring) })
				require.True(t, w.until(time.Hour, func() bool { return len(w.calls) > calls && w.record(n) == nil }), n)
			}
			took[refused] = time.Since(began)
			require.Equal(t, map[bool]int{false: 8}[refused], w.remembersGPUs("n5"))
			require.Zero(t, w.heldAs(remediations.ReasonBlind))
			w.do(func() { w.refusesGPUs = false })
			w.pass(2 * time.Minute)
			require.Equal(t, 8, w.remembersGPUs("n5"))
		})
	}
	require.InDelta(t, took[false], took[true], float64(5*time.Second))
}

// TestAResetWhoseAnswerWasLostIsReportedAsDone: the ledger took the reset, and the second try finds
// nothing to forget. A reset without any effect is refused, which is the control.
func TestAResetWhoseAnswerWasLostIsReportedAsDone(t *testing.T) {
	for _, fault := range []string{"save", "write"} {
		inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.hasGPUs("n0", 8) })
			w.pass(2 * time.Minute)
			w.do(func() { w.hasGPUs("n0", 7) })
			w.pass(2 * time.Minute)
			w.do(func() {
				w.faults[fault] = []string{map[string]string{"save": "written", "write": "lost"}[fault]}
				w.edit("n0", edit(remediations.ResetKey, "true"))
			})
			w.pass(5 * time.Minute)
			require.NotContains(t, w.nodeOf("n0").Annotations, remediations.ResetKey)
			require.Empty(t, w.toldOf("AnnotationInvalid"))
			require.Len(t, w.toldOf("RepairCancelled"), 1)
			require.Contains(t, w.toldOf("RepairCancelled")[0].Note, "Drydock expects 7 GPUs of the machine from now on, not 8")

			w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
			w.pass(2 * time.Minute)
			require.Len(t, w.toldOf("AnnotationInvalid"), 1)
		})
	}
}
