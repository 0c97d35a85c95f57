package soak

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Histories is for the TestMain of a package with a model world. It keeps the ordinary run short, with the same histories each time: a
// change is judged by what it changed. With DRYDOCK_SOAK=1 it runs a hundred times as many, others each time; -rapid.checks and
// -rapid.seed name the histories exactly. rapid writes a history that failed into testdata/rapid; once it is committed, each run begins
// with it.
func Histories(m *testing.M) {
	flag.Parse()
	chosen := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { chosen[f.Name] = true })
	checks, seed := strconv.Itoa(40), "1"
	if testing.Short() {
		checks = strconv.Itoa(max(10, 40/Every()) * 5) // of which rapid itself takes a fifth; in fewer lives nothing may happen
	}
	if Whole() {
		checks, seed = "4000", "0" // 0: another one each time
	}
	if !chosen["rapid.checks"] {
		_ = flag.Set("rapid.checks", checks)
		if !chosen["rapid.seed"] {
			_ = flag.Set("rapid.seed", seed)
		}
	}
	os.Exit(m.Run())
}

// Every is how far apart the cases of a campaign are that are looked at: -short, with the race detector, leaves three of four out, and
// make quick fifteen of sixteen.
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
