package mesh

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Prometheus rules and the kilo provider read these metrics by name and label.
var (
	ends        = []string{"path", "proto", "src_node", "src_location", "src_role", "dst_node", "dst_location", "dst_role"}
	successDesc = prometheus.NewDesc("drydock_mesh_probe_success",
		"1 if a small and a large payload came back over a new flow in one of the last three rounds, 0 if not. A target without a result has no series.", ends, nil)
	durationDesc = prometheus.NewDesc("drydock_mesh_probe_duration_seconds",
		"Time that the last probe took, if it succeeded.", ends, nil)
	ageDesc = prometheus.NewDesc("drydock_mesh_agent_topology_age_seconds",
		"Time since the agent last saw a change of any Node. Kilo's agents write theirs every 30 s.", nil, nil)
	peersDesc = prometheus.NewDesc("drydock_mesh_agent_peers",
		"Other nodes that have an agent.", nil, nil)
	targetsDesc = prometheus.NewDesc("drydock_mesh_agent_targets",
		"Nodes probed in the last round.", nil, nil)
	unplacedDesc = prometheus.NewDesc("drydock_mesh_agent_nodes_without_location",
		"Nodes that Kilo counts and that have no location: no agent probes them.", nil, nil)
)

// collector takes roles and locations from the current topology, so a pair of nodes never has two
// series.
type collector struct{ *Prober }

func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{successDesc, durationDesc, ageDesc, peersDesc, targetsDesc, unplacedDesc} {
		out <- d
	}
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	t := c.options.Topology()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(ageDesc, c.options.Age().Seconds())
	gauge(peersDesc, float64(t.Peers))
	gauge(unplacedDesc, float64(len(t.Unplaced)))
	c.mu.Lock()
	defer c.mu.Unlock()
	gauge(targetsDesc, float64(c.targets))
	self, ok := t.Nodes[t.Self]
	if !ok {
		return
	}
	for k, w := range c.results {
		dst, ok := t.Nodes[k.node]
		if !ok || w.from != self.Location || w.to != dst.Location || w.role != dst.Role {
			continue
		}
		path := "cross"
		if self.Location == dst.Location {
			path = "local"
		}
		labels := []string{path, string(k.proto), self.Name, self.Location, string(self.Role), dst.Name, dst.Location, string(dst.Role)}
		if !w.ok {
			gauge(successDesc, 0, labels...)
			continue
		}
		gauge(successDesc, 1, labels...)
		gauge(durationDesc, w.took.Seconds(), labels...)
	}
}
