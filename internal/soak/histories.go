package soak

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Histories is the TestMain of a package that tests random histories. A normal run is short and
// uses the same histories each time, so that its result depends only on the code. With
// DRYDOCK_SOAK=1 it runs a hundred times as many histories, different ones each time. The flags
// -rapid.checks and -rapid.seed select the histories exactly. rapid writes a failed history to
// testdata/rapid. Once that file is committed, each run starts with it.
func Histories(m *testing.M) {
	flag.Parse()
	chosen := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { chosen[f.Name] = true })
	checks, seed := strconv.Itoa(40), "1"
	if testing.Short() {
		checks = strconv.Itoa(max(10, 40/Every()) * 5) // rapid itself runs a fifth of these; with fewer, a run may contain no repair at all
	}
	if Whole() {
		checks, seed = "4000", "0" // 0: a different one each time
	}
	if !chosen["rapid.checks"] {
		_ = flag.Set("rapid.checks", checks)
		if !chosen["rapid.seed"] {
			_ = flag.Set("rapid.seed", seed)
		}
	}
	os.Exit(m.Run())
}

// Every returns 16 in make quick, and 4 with -short, which the runs with the race detector use:
// tests then run one of that many cases. Otherwise it returns 1.
func Every() int {
	switch {
	case os.Getenv("DRYDOCK_QUICK") != "":
		return 16
	case testing.Short():
		return 4
	default:
		return 1
	}
}
