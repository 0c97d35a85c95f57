package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/coverage"
)

// coverageEvery is the shortest time between two counts. A new Node has that long to get a
// provider.
const coverageEvery = 5 * time.Minute

type lastCount struct {
	at    time.Time
	lacks map[string]coverage.Lack
	// of is the version of the set of Nodes that were counted.
	of int
}

// uncovered counts rarely, because no decision depends on it.
func (p *pass) uncovered() map[string]coverage.Lack {
	c := &p.lastCount
	if of := p.roster.Identities(); c.lacks == nil || (of != c.of && p.now.Sub(c.at).Abs() >= coverageEvery) {
		c.at, c.of, c.lacks = p.now, of, coverage.Lacks(p.Config, p.roster.Nodes())
		p.metrics.setUncovered(c.lacks)
	}
	return c.lacks
}

func newUncoveredMetric() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drydock_nodes_uncovered", Help: "Nodes where a planned step has no provider, or more than one, by step.",
	}, []string{"step"})
}

func (m *metrics) setUncovered(lacks map[string]coverage.Lack) {
	for _, step := range m.served {
		m.uncovered.WithLabelValues(step).Set(float64(lacks[step].Nodes))
	}
}

func servedSteps(c *remediations.Config) (steps []string) {
	for _, p := range c.Providers {
		for _, step := range p.Steps {
			if c.Remediation(step).Target == remediations.KindNode {
				steps = append(steps, step)
			}
		}
	}
	return steps
}
