package backtest

import (
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEnvironmentHasTheLastWordOnMemory(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(name, "") // is put back as it was
		require.NoError(t, os.Unsetenv(name))
	}
	BoundMemory()
	require.EqualValues(t, memoryLimit, debug.SetMemoryLimit(math.MaxInt64))
	require.Equal(t, gcPercent, debug.SetGCPercent(100))

	t.Setenv("GOGC", "100")
	BoundMemory()
	require.EqualValues(t, memoryLimit, debug.SetMemoryLimit(math.MaxInt64), "GOGC says nothing about the limit")
	require.Equal(t, 100, debug.SetGCPercent(100))

	t.Setenv("GOMEMLIMIT", "1GiB")
	BoundMemory()
	require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1))
}
