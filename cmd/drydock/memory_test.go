package main

import (
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryStaysATenthBelowTheContainersLimit(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	t.Setenv("GOGC", "") // is put back as it was
	require.NoError(t, os.Unsetenv("GOGC"))
	debug.SetMemoryLimit(500 << 20)
	boundMemory()
	require.EqualValues(t, 450<<20, debug.SetMemoryLimit(-1))
	require.Equal(t, gcPercent, debug.SetGCPercent(100))

	t.Setenv("GOGC", "100")
	debug.SetMemoryLimit(math.MaxInt64)
	boundMemory()
	require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1), "without a limit there is none to stay below")
	require.Equal(t, 100, debug.SetGCPercent(100), "GOGC has the last word")
}
