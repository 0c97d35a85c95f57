package backtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// BenchmarkMonth is the decisions about 30 days of 5,000 nodes of which one fails each hour, for 20 minutes; as it went and as if
// cured, one after the other. Reading is no part of it.
func BenchmarkMonth(b *testing.B) {
	const nodes, days = 5000, 30
	p := past{}
	for i := range nodes {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%04d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
	}
	for h := range days * 24 {
		p.ill(fmt.Sprintf("n%04d", h*7%nodes), at(h, 10), at(h, 30))
	}
	moments := p.moments()
	for _, curing := range []bool{false, true} {
		b.Run(fmt.Sprintf("curing=%t", curing), func(b *testing.B) {
			for b.Loop() {
				o := optionsOf(b, dayConfig)
				o.Curing, o.Config.Windows = curing, nil
				r := replay(b, o, moments, midnight, at(24*days, 0))
				require.Greater(b, r.answer("").Totals.Acted, 500)
				b.ReportMetric(float64(r.passes), "steps/op")
				b.ReportMetric(peak(b), "MB-peak")
			}
		})
	}
}
