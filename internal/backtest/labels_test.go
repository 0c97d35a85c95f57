package backtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations/signs"
)

// TestEachLabelThatAConfigurationUsesIsKnown: a Node of the past has no other.
func TestEachLabelThatAConfigurationUsesIsKnown(t *testing.T) {
	t.Parallel()
	selecting := strings.Replace(dayConfig, "  for: 2m", "  nodeSelector: {matchExpressions: [{key: example.com/rack, operator: Exists}]}\n  for: 2m", 1)
	selecting = strings.Replace(selecting, "apiKeyFile: /key}", "apiKeyFile: /key, nodeSelector: {matchLabels: {example.com/vendor: a}}}", 1)
	selecting = strings.Replace(selecting, "limits: {", "holdWhen: {labels: {example.com/claimed: {by: us, means: it is taken}}}\nlimits: {zoneLabel: example.com/zone, poolLabels: [example.com/pool], ", 1)
	var past history.Options
	Asks([]Named{{"first.yaml", optionsOf(t, dayConfig)}, {"second.yaml", optionsOf(t, selecting)}}, &past)
	names := past.NodeLabels
	for _, name := range []string{"example.com/rack", "example.com/vendor", "example.com/claimed", "example.com/zone", "example.com/pool", signs.GPUCountLabel} {
		require.Contains(t, names, name)
	}
	require.NotContains(t, names, "")
}

// TestMessagesAboutOneConfigurationNameIt: each sentence stands once.
func TestMessagesAboutOneConfigurationNameIt(t *testing.T) {
	t.Parallel()
	other := strings.Replace(dayConfig, "  for: 2m", "  nodeSelector: {matchExpressions: [{key: example.com/rack, operator: Exists}]}\n  for: 2m", 1)
	p := tenWell()
	p.at(midnight).Nodes[0].Labels = map[string]string{signs.GPUCountLabel: "8"}
	r, err := Backtest(t.Context(), given(p.moments()), midnight, at(1, 0), Named{"first.yaml", optionsOf(t, dayConfig)}, Named{"second.yaml", optionsOf(t, other)})
	require.NoError(t, err)
	require.Contains(t, r.Assumptions, "Policies that observe are replayed as if they enforced.")
	rack := "second.yaml: No Node in the record has the label example.com/rack, which the node selectors of these policies use: node-not-ready."
	said := strings.Join(r.Assumptions, "\n")
	require.Contains(t, said, rack)
	require.NotContains(t, said, "has the label "+signs.GPUCountLabel, "one has it")
	for i, one := range r.Assumptions {
		require.NotContains(t, r.Assumptions[:i], one)
	}
}
