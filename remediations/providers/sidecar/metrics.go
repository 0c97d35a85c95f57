package sidecar

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

var outcomes = map[kind.Health]string{
	kind.HealthReady: "ready", kind.HealthNotReady: "not_ready", kind.HealthUnreachable: "unreachable", kind.HealthProbeError: "probe_error",
}

// A nil probes counts nothing.
type probes struct {
	counters map[kind.Health]prometheus.Counter
}

// newProbes creates a series for each outcome. If the first probe created it, Prometheus would not
// see this probe as an increase.
func newProbes(r prometheus.Registerer, provider string) (*probes, error) {
	if r == nil {
		return nil, nil
	}
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drydock_sidecar_probes_total", Help: "Probes of gated sidecars, by provider and outcome.",
	}, []string{"provider", "outcome"})
	if err := r.Register(total); err != nil {
		// Another provider's Client has already registered the metric.
		var already prometheus.AlreadyRegisteredError
		known := false
		if errors.As(err, &already) {
			total, known = already.ExistingCollector.(*prometheus.CounterVec)
		}
		if !known {
			return nil, fmt.Errorf("registering the metric drydock_sidecar_probes_total: %w", err)
		}
	}
	p := &probes{counters: map[kind.Health]prometheus.Counter{}}
	for health, outcome := range outcomes {
		p.counters[health] = total.WithLabelValues(provider, outcome)
	}
	return p, nil
}

func (p *probes) count(h kind.Health) {
	if p != nil {
		p.counters[h].Inc()
	}
}
