// Package missing ends tests of what this machine cannot run.
package missing

import (
	"os"
	"testing"
)

// Need ends a test where err says what is missing for it: the test is skipped on somebody's machine, and fails where
// DRYDOCK_NO_SKIP is set, because nothing should be missing there and nobody would notice that the test no longer runs.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("DRYDOCK_NO_SKIP") != "":
		t.Fatalf("%s CANNOT BE TESTED HERE: %s", what, err)
	default:
		t.Skipf("%s IS NOT TESTED HERE: %s", what, err)
	}
}
