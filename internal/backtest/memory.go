package backtest

import (
	"os"
	"runtime/debug"
)

const (
	// The garbage collector starts when the heap is five times the memory in use, not twice: a
	// replay is short and makes much garbage.
	gcPercent = 400
	// In bytes. Near this limit the garbage collector runs more often.
	memoryLimit = 700 << 20
)

// BoundMemory sets the limits of the garbage collector for a program that only runs a backtest.
// GOGC and GOMEMLIMIT override them.
func BoundMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}
