package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTimesOfNodeRulesAreDivided, and those of no other rule: what they wait, look back, and
// want of a node's age.
func TestTheTimesOfNodeRulesAreDivided(t *testing.T) {
	t.Parallel()
	custom, err := customRules()
	require.NoError(t, err)
	require.Contains(t, custom, "NodeNotReady")
	require.Contains(t, custom, "NodeDiskPressure")
	require.NotContains(t, custom, "DrydockSourceDown")
	require.NotContains(t, custom, "NodesNotReady", "no policy takes it")
	for alert, values := range custom {
		expr, _ := values.(map[string]any)["expr"].(string)
		require.NotContains(t, expr, "3m", alert)
		require.NotContains(t, expr, "600", alert)
	}
	rule, _ := custom["NodeNotReady"].(map[string]any)
	require.Equal(t, "12500ms", rule["for"])
	require.Equal(t, "5000ms", rule["keepFiringFor"])
	require.Contains(t, rule["expr"], "[15s]")
	require.Contains(t, rule["expr"], "< 50)")
}
