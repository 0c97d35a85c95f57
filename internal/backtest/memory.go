package backtest

import (
	"os"
	"runtime/debug"
)

const (
	// gcPercent starts the garbage collector when the heap is five times the memory in use, not twice:
	// a replay is short and makes much garbage.
	gcPercent = 400
	// memoryLimit is the memory, in bytes, near which the garbage collector runs more often.
	memoryLimit = 700 << 20
)

// BoundMemory sets the limits of the garbage collector for a program that only runs a backtest. The
// environment variables GOGC and GOMEMLIMIT override them.
func BoundMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}
