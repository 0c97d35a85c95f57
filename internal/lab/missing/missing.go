// Package missing ends tests that this machine cannot run.
package missing

import (
	"os"
	"testing"
)

// Need ends a test if err is not nil: this machine lacks something. The test is skipped on a
// developer's machine. It fails if DRYDOCK_NO_SKIP is set: nothing should be missing there, and a
// skipped test would go unnoticed.
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
