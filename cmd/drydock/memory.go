package main

import (
	"math"
	"os"
	"runtime/debug"
)

const (
	// gcPercent starts the garbage collector when the heap has grown by half. Go's default is when the
	// heap has doubled. Many alerts in a short time make much garbage: requests, answers and decoded
	// Nodes. Collecting twice as often costs little, and keeps the process's memory smaller.
	gcPercent = 50
	// headroom is the percentage of GOMEMLIMIT that Go must leave free. The chart sets GOMEMLIMIT to
	// the container's memory limit, but that limit also counts memory outside Go's heap, for example
	// the pages of the executable.
	headroom = 10
)

func boundMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit - limit/headroom)
	}
}
