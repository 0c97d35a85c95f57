package engine

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// TestEachMetricIsAFamilyOfItsOwnInOpenMetrics: there, a counter's family has its name without _total.
func TestEachMetricIsAFamilyOfItsOwnInOpenMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	newMetrics(registry, modelConfig())
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
