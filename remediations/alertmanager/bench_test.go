package alertmanager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// listOf returns an answer of Alertmanager with n active alerts. One in ten is of interest.
func listOf(t testing.TB, n int) []byte {
	alerts := make([]any, n)
	for i := range alerts {
		labels := map[string]string{
			"alertname": "ContainerRestarts", "node": fmt.Sprintf("node-%d", i), "pod": fmt.Sprintf("pod-%d", i), "severity": "warning", "cluster": "bench",
			"namespace": "monitoring", "job": "kube-state-metrics", "instance": "10.0.0.1:8080", "prometheus": "monitoring/k8s",
		}
		if i%10 == 0 {
			labels["remediation"] = "node-not-ready"
		}
		alerts[i] = map[string]any{
			"labels": labels, "fingerprint": fmt.Sprintf("%016x", i), "receivers": []any{map[string]string{"name": "drydock"}},
			"annotations": map[string]string{
				"summary": "a sentence of the usual length about what is wrong here", "runbook_url": "https://example.com/runbooks/ContainerRestarts",
				"description": "a longer one, which says since when it is wrong, how much of it there is, and what happens if nobody does anything about it",
			},
			"startsAt": "2026-11-20T21:00:00.000Z", "endsAt": "2026-11-20T22:00:00.000Z", "updatedAt": "2026-11-20T21:30:00.000Z",
			"generatorURL": "http://prometheus.example.com/graph?g0.expr=increase(kube_pod_container_status_restarts_total)",
			"status":       map[string]any{"state": "active", "silencedBy": []string{}, "inhibitedBy": []string{}, "mutedBy": []string{}},
		}
	}
	text, err := json.Marshal(alerts)
	require.NoError(t, err)
	return text
}

func interested(t testing.TB) interests {
	in, err := newInterests(Options{
		Watchdog: `alertname="Watchdog"`, BlindWhen: []string{`alertname="DrydockSourceDown"`},
		Keep: func(labels map[string]string) bool { return labels["remediation"] != "" }, NodeLabels: []string{"node"},
	})
	require.NoError(t, err)
	return in
}

// BenchmarkAnswer measures the decoding of one poll: of new alerts, and of alerts that are
// unchanged since the last poll.
func BenchmarkAnswer(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		text, in := listOf(b, n), interested(b)
		read := func(known readings) *answer {
			a := newAnswer(in, known)
			require.NoError(b, (&stream{of: "alerts", element: a.read}).Consume(bytes.NewReader(text), nil))
			require.Len(b, a.alerts, n/10)
			return a
		}
		for name, known := range map[string]readings{"new": nil, "again": read(nil).readings} {
			b.Run(fmt.Sprintf("alerts=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					read(known)
				}
			})
		}
	}
}
