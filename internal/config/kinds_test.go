package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestEveryKindThatIsRepairedIsKnown: no part would take an alert about a kind that is missing
// here.
func TestEveryKindThatIsRepairedIsKnown(t *testing.T) {
	known := map[remediations.Kind]bool{remediations.KindNode: true}
	for _, k := range kinds {
		require.False(t, known[k.Kind], "%s stands twice", k.Kind)
		known[k.Kind] = true
	}
	require.True(t, known[remediations.KindAPIServer])
	for _, r := range remediations.Shipped() {
		require.True(t, known[r.Target], "%s repairs a %s", r.Name, r.Target)
	}
}
