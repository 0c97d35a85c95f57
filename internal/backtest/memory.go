package backtest

import (
	"os"
	"runtime/debug"
)

const (
	// gcPercent has the collector run when the heap is five times what was in use, not twice: a replay is short, and makes much garbage.
	gcPercent = 400
	// memoryLimit has the collector run more often before the program takes much more than that.
	memoryLimit = 700 << 20
)

// BoundMemory sets the collector's bounds for a program that does nothing but a backtest. GOGC and GOMEMLIMIT have the last word.
func BoundMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}
