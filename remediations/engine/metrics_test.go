package engine

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestEachMetricIsAFamilyOfItsOwnInOpenMetrics: there, a counter's family has its name without
// _total.
func TestEachMetricIsAFamilyOfItsOwnInOpenMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, modelConfig())
	m.repairs.WithLabelValues("node-not-ready", string(remediations.PhaseActing)).Set(1)
	families, err := registry.Gather()
	require.NoError(t, err)
	seen := map[string]string{}
	for _, f := range families {
		family := strings.TrimSuffix(f.GetName(), "_total")
		require.Empty(t, seen[family], f.GetName())
		seen[family] = f.GetName()
	}
	require.Contains(t, seen, "drydock_repairs")
	require.Contains(t, seen, "drydock_repairs_in_progress")
}
