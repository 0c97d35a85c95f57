// Package soak decides how much a test runs: a sample in make test and make e2e, everything in make
// soak.
package soak

import (
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Whole reports whether all cases must run, not only a sample. It is true if DRYDOCK_SOAK is set.
func Whole() bool { return os.Getenv("DRYDOCK_SOAK") != "" }

// Main is the TestMain of a package with random tests. In make soak it runs a hundred times as many
// cases. The flag -rapid.checks sets the number exactly.
func Main(m *testing.M) { Checks(m, 100) }

// Checks is Main for expensive tests, with this number of cases in a normal run.
func Checks(m *testing.M, checks int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if Whole() {
		checks *= 100
	}
	if !chosen {
		_ = flag.Set("rapid.checks", strconv.Itoa(checks))
	}
	os.Exit(m.Run())
}

// OneOf selects from cases that take minutes each: all in the soak, and otherwise a random one.
func OneOf[Case any](t testing.TB, cases map[string]Case) map[string]Case {
	t.Helper()
	if Whole() {
		return cases
	}
	names := slices.Sorted(maps.Keys(cases))
	name := names[rand.IntN(len(names))]
	t.Logf("a sample, %q of %q; DRYDOCK_SOAK=1 runs all", name, names)
	return map[string]Case{name: cases[name]}
}
