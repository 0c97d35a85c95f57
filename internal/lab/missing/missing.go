// Package missing skips tests that this machine cannot run.
package missing

import (
	"os"
	"testing"
)

// Need ends a test if err is not nil: err names what this machine lacks. The test is skipped. If
// DRYDOCK_NO_SKIP is set, it fails, because a skipped test would go unnoticed there.
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
