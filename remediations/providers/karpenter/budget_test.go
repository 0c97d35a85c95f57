package karpenter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhenABudgetForbids, by cron's rules in UTC.
func TestWhenABudgetForbids(t *testing.T) {
	for _, c := range []struct {
		nodes, schedule, duration string
		forbids                   bool
	}{
		{"0", "", "", true},
		{"0%", "", "", true},
		{"00%", "", "", true},
		{"10%", "", "", false},
		{"1", "* * * * *", "1h", false},
		{"0", "0 10 * * *", "1m", true},
		{"0", "59 9 * * *", "1m", false}, // ended 30 s ago
		{"0", "59 9 * * *", "2m", true},
		{"0", "1 10 * * *", "1h", false}, // not yet
		{"0", "0 9-17/4 * * mon-fri", "90m", true},
		{"0", "0 10 * * sun,sat", "8h", false},
		{"0", "0 10 * * sun", "25h", true},
		{"0", "0 10 23 * sun", "1h", true}, // either day is enough
		{"0", "0 10 22 * sun", "1h", false},
		{"0", "0 10 22 * mon", "1h", true},
		{"0", "0 10 22 * *", "1h", false},
		{"0", "0 10 * nov *", "1h", true},
		{"0", "0 10 * dec *", "1h", false},
		{"0", "*/30 * * * *", "2m", true},
		{"0", "@daily", "11h", true},
		{"0", "@daily", "10h", false},
		{"0", "0 0 1 jan *", "7900h", true},
		{"0", "0 0 31 feb *", "1h", true}, // a time that never comes: Karpenter reads the budget as active
	} {
		got, err := budget{Nodes: c.nodes, Schedule: c.schedule, Duration: c.duration}.forbids(monday.In(time.FixedZone("x", 7200)))
		require.NoError(t, err, c)
		require.Equal(t, c.forbids, got, c)
	}
	for _, bad := range []string{" ", "0 10 * *", "60 * * * *", "0 10 * * 7", "5-1 * * * *", "*/0 * * * *", "x * * * *", "1-x * * * *", "* * 0 * *", "@often", "TZ=Asia/Tokyo 0 10 * * *"} {
		_, err := budget{Nodes: "0", Schedule: bad, Duration: "1h"}.forbids(monday)
		require.Error(t, err, bad)
	}
	_, err := budget{Nodes: "0", Schedule: "* * * * *", Duration: "long"}.forbids(monday)
	require.Error(t, err)
}
