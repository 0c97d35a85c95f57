package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The demo looks itself at each thing that it tells: the call, the cure, the silence that holds, the drain that is refused.
func TestTheDemoDoesWhatItTells(t *testing.T) {
	require.NoError(t, demo(t.Context()))
}
