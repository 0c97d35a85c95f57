package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// nodeSeriesOf are the series about single nodes in a scrape, each as "name label=value ... value",
// sorted.
func nodeSeriesOf(t *testing.T, m *nodeMetrics) []string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.collectors()...)
	families, err := reg.Gather()
	require.NoError(t, err)
	var out []string
	for _, f := range families {
		for _, s := range f.GetMetric() {
			text := strings.TrimPrefix(f.GetName(), "drydock_node_")
			for _, l := range s.GetLabel() {
				text += " " + l.GetName() + "=" + l.GetValue()
			}
			out = append(out, fmt.Sprintf("%s %v", text, s.GetGauge().GetValue()))
		}
	}
	return out
}

// TestANodeHasSeriesWhileItsRepairIsOnRecord: its phase, its attempts, what holds it and what its
// witness shows. A node without a repair has none, and a replica that does not lead shows none.
func TestANodeHasSeriesWhileItsRepairIsOnRecord(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		shown := func() []string { return nodeSeriesOf(t, &i.engine.metrics.nodes) }
		w.pass(16 * time.Second)
		require.Empty(t, shown(), "no node has a repair")
		w.do(func() { w.breakDown("n0", 2) })
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 && w.record("n0").Phase == remediations.PhaseVerifying }))
		w.pass(time.Second)
		require.Subset(t, shown(), []string{
			"repair_attempts node=n0 policy=node-not-ready result=running step=reboot 1",
			"repair_phase mode=enforce node=n0 phase=Verifying policy=node-not-ready 1",
		})
		require.True(t, w.until(20*time.Minute, func() bool { return len(w.calls) == 2 }))
		w.pass(time.Second)
		require.Subset(t, shown(), []string{
			"repair_attempts node=n0 policy=node-not-ready result=failed step=reboot 1",
			"repair_attempts node=n0 policy=node-not-ready result=running step=reboot 1",
		})
		w.do(func() {
			w.edit("n1", func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true" })
			w.ail("n1", 1)
			w.post("n1", remediations.StatusFiring)
		})
		require.True(t, w.until(time.Minute, func() bool { return w.record("n1") != nil && w.record("n1").Hold != nil }))
		w.pass(time.Second)
		require.Subset(t, shown(), []string{
			"hold node=n1 policy=node-not-ready reason=Paused 1",
			"repair_phase mode=enforce node=n1 phase=Pending policy=node-not-ready 1",
			"sign answer=ill node=n1 policy=node-not-ready reason=NodeStatusUnknown sign=ready 1",
		})
		w.do(func() { w.leave("n1") })
		require.True(t, w.until(30*time.Minute, func() bool { return w.record("n0") == nil }))
		w.pass(time.Minute)
		require.Empty(t, shown(), "n0 is well again, and n1 is gone")
	})
}

// TestSeriesDistinguishMissingGPUsFromNoGPUs, as the reasons of Civo's node agent did.
func TestSeriesDistinguishMissingGPUsFromNoGPUs(t *testing.T) {
	c := modelConfig()
	c.Policies[0].Witness = &signs.Witness{Signs: []signs.Sign{{Kind: signs.MissingGPUs}}}
	e := New(Options{Config: c, Metrics: prometheus.NewRegistry()})
	p := &pass{Engine: e, tally: newTally(), now: time.Now()}
	for name, offered := range map[string]string{"none": "0", "some": "7", "all": "8"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{signs.GPUCountLabel: "8"}}}
		n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(offered)}
		p.tally.show(p.samples(n, nil, lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: remediations.ReasonPaused, Policy: c.Policies[0]}))
	}
	e.metrics.nodes.set(p.tally.nodes)
	require.Subset(t, nodeSeriesOf(t, &e.metrics.nodes), []string{
		"sign answer=ill node=none policy=node-not-ready reason=NoAllocatableGPU sign=gpus 1",
		"sign answer=ill node=some policy=node-not-ready reason=GPUCountMismatch sign=gpus 1",
		"sign answer=well node=all policy=node-not-ready reason=GPUCountMatch sign=gpus 1",
	})
	e.metrics.reset()
	require.Empty(t, nodeSeriesOf(t, &e.metrics.nodes))
}

// TestSeriesOfNodesAreBounded: a storm with thousands of waiting nodes does not create as many
// series, and it hides no repair that has begun.
func TestSeriesOfNodesAreBounded(t *testing.T) {
	held, acting := func(name string) []nodeSample {
		return []nodeSample{{nodeSeries{nodeHold, [5]string{name, "p", "FleetUnhealthy"}}, 1}}
	}, []nodeSample{{nodeSeries{nodePhase, [5]string{"last", "p", "enforce", "Acting"}}, 1}}
	tally := newTally()
	for i := range 5 * mostShown {
		tally.show(held(fmt.Sprintf("n%d", i)))
	}
	tally.show(acting)
	require.Len(t, tally.nodes, mostShown+1)
	require.Contains(t, slices.Collect(maps.Keys(tally.nodes)), acting[0].of)
}

// TestASidecarHasASeriesWhileItsAlertFires: the series distinguishes a sidecar that does not answer
// from a closed gate, and has the namespace.
func TestASidecarHasASeriesWhileItsAlertFires(t *testing.T) {
	inGates(t, sidecarConfig(), 2, func(t *testing.T, w *world) {
		i := w.start()
		shown := func() []string { return nodeSeriesOf(t, &i.engine.metrics.nodes) }
		w.pass(16 * time.Second)
		require.Empty(t, shown(), "no alert fires")
		w.do(func() {
			for pod := range 2 {
				w.replacePod(podName(pod), "n0")
				w.pod(podName(pod)).hidden, w.pod(podName(pod)).held = pod == 0, "a workflow holds it"
				w.postPod(podName(pod))
			}
		})
		w.pass(20 * time.Second)
		series := func(pod int, outcome string) string {
			return "drydock_sidecar_health namespace=sei node=n0 outcome=" + outcome + " pod=" + podName(pod) + " policy=sidecar-not-ready 1"
		}
		require.ElementsMatch(t, []string{series(0, "unreachable"), series(1, "not_ready")}, shown())
		w.do(func() { w.pod(podName(0)).hidden, w.pod(podName(0)).held, w.pod(podName(1)).held = false, "", "" })
		require.True(t, w.until(2*time.Minute, w.allOpen))
		w.pass(3 * time.Minute)
		require.Empty(t, shown(), "both are ready, and their alerts are over")
	})
}
