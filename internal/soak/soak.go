// Package soak lets the random tests of a package look at more cases.
package soak

import (
	"flag"
	"os"
	"testing"
)

// Main is for a package's TestMain: DRYDOCK_SOAK=1 looks at a hundred times as many cases; -rapid.checks says how many exactly.
func Main(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen && os.Getenv("DRYDOCK_SOAK") != "" {
		_ = flag.Set("rapid.checks", "10000")
	}
	os.Exit(m.Run())
}
