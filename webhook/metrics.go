package webhook

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/remediations/admission"
)

const (
	allowed = "allowed"
	warned  = "warned"
	denied  = "denied"
)

// For requests that could not be checked. A request with the reason tooLarge is denied, and with
// any other of these allowed.
const (
	undecodable   admission.Reason = "Undecodable"
	podUnreadable admission.Reason = "PodUnreadable"
	panicked      admission.Reason = "Panicked"
	tooLarge      admission.Reason = "TooLarge"
)

// All series of drydock_admission_total exist from the start, so that rate() shows the first
// denial.
type metrics struct {
	total    *prometheus.CounterVec
	duration prometheus.Histogram
	last     prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer, certDir string) (*metrics, error) {
	m := &metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drydock_admission_total", Help: "Requests to change a Node, or to evict a pod, by verdict and its reason.",
		}, []string{"verdict", "reason"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "drydock_admission_duration_seconds", Help: "Time to check a request; the API server waits for 2 s.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2},
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "drydock_admission_last_request_timestamp_seconds", Help: "Unix time of the last request to this replica; 0: no request since its start.",
		}),
	}
	for _, verdict := range []string{allowed, warned, denied} {
		for _, reason := range admission.Reasons {
			m.total.WithLabelValues(verdict, string(reason))
		}
	}
	for _, reason := range []admission.Reason{undecodable, podUnreadable, panicked} {
		m.total.WithLabelValues(allowed, string(reason))
	}
	m.total.WithLabelValues(denied, string(tooLarge))
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.total, m.duration, m.last, newCertificateEnd(certDir)} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the webhook's metrics: %w", err)
		}
	}
	return m, nil
}
