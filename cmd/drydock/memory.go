package main

import (
	"math"
	"os"
	"runtime/debug"
)

const (
	// gcPercent has the collector run when the heap has grown by half, not when it has doubled. A storm's posts, answers and
	// decoded Nodes are garbage at once; collecting them twice as often costs little, and what they took stays resident.
	gcPercent = 50
	// headroom is the part of GOMEMLIMIT that is left free: the chart sets that to the container's limit, which counts what
	// Go's own does not, such as the executable's pages.
	headroom = 10
)

// boundMemory sets the collector's bounds. GOGC has the last word on the first.
func boundMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit - limit/headroom)
	}
}
