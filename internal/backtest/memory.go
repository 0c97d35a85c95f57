package backtest

import (
	"os"
	"runtime/debug"
)

const (
	// gcPercent starts the collector when the heap is five times the memory in use, not twice: a
	// replay is short and makes much garbage.
	gcPercent = 400
	// memoryLimit makes the collector run more often before the program takes much more.
	memoryLimit = 700 << 20
)

// BoundMemory sets the collector's bounds for a program that only runs a backtest. The variables
// GOGC and GOMEMLIMIT override them.
func BoundMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}
