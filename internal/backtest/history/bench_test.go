package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// BenchmarkReading is the reading of six hours of 100 nodes with six rules, and the server's
// answers to it.
func BenchmarkReading(b *testing.B) {
	const nodes, hours = 100, 6
	r := New(b)
	machines := make([]Machine, nodes)
	Every(0, hours*60, func(when time.Time, minutes float64) {
		for i := range machines {
			machines[i] = Machine{Name: fmt.Sprintf("node-%d", i)}
			if i == int(minutes)/10 {
				machines[i].Ready = "unknown"
			}
		}
		r.Scrape(when, "a", KubeStateMetrics("a", machines...))
	})
	url := r.Serve()
	var files []history.RuleFile
	for _, name := range []string{"NodeNotReady", "NodeReadinessFlapping", "NodesNotReady", "NodeDiskPressure", "NodeHeartbeatLost", "NodeKernelDeadlock"} {
		read, err := history.ReadRules(rulesFolder + "/" + name + ".yaml")
		require.NoError(b, err)
		files = append(files, read...)
	}
	for b.Loop() {
		past, err := history.OpenPrometheus(url, nil, history.Options{Rules: files, Interval: 30 * time.Second})
		require.NoError(b, err)
		require.NoError(b, past.Moments(b.Context(), At(0), At(hours*60), func(history.Moment) error { return nil }))
		require.NoError(b, past.Close())
	}
}
