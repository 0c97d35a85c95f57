package backtest

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// BenchmarkMonth is the decisions about 30 days of 5,000 nodes. One node fails each hour, for 20
// minutes. Both answers run at the same time, as in the command. Reading is not measured.
func BenchmarkMonth(b *testing.B) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	debug.SetGCPercent(percent) // asking for it has set it
	BoundMemory()
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	const nodes, days = 5000, 30
	p := past{}
	for i := range nodes {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%04d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
	}
	for h := range days * 24 {
		p.ill(fmt.Sprintf("n%04d", h*7%nodes), at(h, 10), at(h, 30))
	}
	moments := given(p.moments())
	before := processorTime()
	for b.Loop() {
		o := optionsOf(b, dayConfig)
		o.Config.Windows = nil
		r, err := Backtest(b.Context(), moments, midnight, at(24*days, 0), Named{Name: "month", Options: o})
		require.NoError(b, err)
		for _, run := range r.Runs {
			require.Greater(b, run.Totals.Acted, 500)
		}
	}
	b.ReportMetric((processorTime()-before).Seconds()/float64(b.N), "processor-s")
	b.ReportMetric(peak(b), "MB-peak")
}
