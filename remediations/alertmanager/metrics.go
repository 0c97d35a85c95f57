package alertmanager

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/remediations/alerts"
)

// upMetric is drydock_alertmanager_up. When a replica is removed or gets another address, its old
// series is deleted. Otherwise an alert about the old address would fire for ever.
type upMetric struct {
	gauge *prometheus.GaugeVec
	mu    sync.Mutex
	last  map[string]bool
}

func newUpMetric() *upMetric {
	return &upMetric{gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drydock_alertmanager_up",
		Help: "Whether the Alertmanager replica answered the last poll with a list of alerts (1) or not (0).",
	}, []string{"url"})}
}

func (m *upMetric) set(replicas []alerts.Replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	current := make(map[string]bool, len(replicas))
	for _, r := range replicas {
		up := 0.0
		if r.Err == nil {
			up = 1
		}
		m.gauge.WithLabelValues(r.URL).Set(up)
		current[r.URL] = true
	}
	for url := range m.last {
		if !current[url] {
			m.gauge.DeleteLabelValues(url)
		}
	}
	m.last = current
}
