package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
)

// The demo looks itself at each thing that it tells: the call, the cure, the silence that holds, the drain that is refused.
func TestTheDemoDoesWhatItTells(t *testing.T) {
	require.NoError(t, demo(t.Context(), times{nodeGrace: lab.DefaultNodeGrace, within: lab.Patience, stormCooldown: 5 * time.Second}))
}
