package soak

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Histories is for the TestMain of a package with a model world. An ordinary run is short and uses
// the same histories each time, so that a result depends only on the change. With DRYDOCK_SOAK=1 it
// runs a hundred times as many, different each time. -rapid.checks and -rapid.seed select the
// histories exactly. rapid writes a failed history to testdata/rapid; once it is committed, each
// run starts with it.
func Histories(m *testing.M) {
	flag.Parse()
	chosen := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { chosen[f.Name] = true })
	checks, seed := strconv.Itoa(40), "1"
	if testing.Short() {
		checks = strconv.Itoa(max(10, 40/Every()) * 5) // rapid itself takes a fifth; with fewer, a run may see nothing happen
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

// Every is the interval of the cases that a campaign runs: -short, with the race detector, skips
// three of four, and make quick fifteen of sixteen.
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
