package engine

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// gpuSeries is what a scrape finds of the gauge.
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
			nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		}
		roster.Read(nodes)
		m.set(c, newTally(), roster.Fleet(&ledger.Ledger{}, false, time.Now()), nil)
	}
	pass(map[string]int{"gpu1": 8, "gpu2": 4})
	require.Equal(t, map[string]float64{"gpu1": 8, "gpu2": 4}, gpuSeries(t, reg))

	pass(map[string]int{"gpu1": 7})
	require.Equal(t, map[string]float64{"gpu1": 7}, gpuSeries(t, reg), "the label changed, and a node that is gone takes its series along")

	m.reset()
	require.Empty(t, gpuSeries(t, reg), "a replica that no longer leads shows none")
	pass(map[string]int{"gpu1": 8})
	require.Equal(t, map[string]float64{"gpu1": 8}, gpuSeries(t, reg), "nor does it forget to, when it leads again")
}
