package main

import (
	"math"
	"os"
	"runtime/debug"
)

const (
	// gcPercent starts the collector when the heap has grown by half, not when it has doubled. The
	// posts, answers and decoded Nodes of a storm become garbage at once. Collecting twice as often
	// costs little, and keeps the resident memory smaller.
	gcPercent = 50
	// headroom is the percentage of GOMEMLIMIT that stays free. The chart sets GOMEMLIMIT to the
	// container's limit, which also counts memory that Go does not, like the executable's pages.
	headroom = 10
)

// boundMemory sets the collector's bounds. The variable GOGC overrides gcPercent.
func boundMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit - limit/headroom)
	}
}
