package daemonsets_test

import (
	"testing"

	"drydock.dev/drydock/internal/lab"
)

// TestMain gives the tests an API server without controllers: an unscheduled pod stays as a test
// made it.
func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Components: lab.APIServerOnly, Nodes: 3})
}
