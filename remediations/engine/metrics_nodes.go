package engine

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

const (
	// mostShown bounds the nodes with series of their own. Nodes whose repair has begun are always
	// shown, and the totals of the other metrics cover all nodes.
	mostShown = 1000
	// signShown is how long a sign is shown after it was read.
	signShown = time.Minute
)

const (
	nodePhase = iota
	nodeAttempts
	nodeHold
	nodeSign
	sidecarHealth
	nodeFamilies
)

type nodeSeries struct {
	family int
	labels [5]string
}

type nodeSample struct {
	of    nodeSeries
	value float64
}

// nodeMetrics has series about a node only while the node has a repair or an alert.
type nodeMetrics struct {
	families [nodeFamilies]*prometheus.GaugeVec
	was      map[nodeSeries]float64
}

func newNodeMetrics() nodeMetrics {
	m := nodeMetrics{was: map[nodeSeries]float64{}}
	m.families[nodePhase] = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drydock_node_repair_phase", Help: "1 for the phase of the repair that the node has on record. A node without a repair has no series; at most 1,000 nodes have one.",
	}, []string{"node", "policy", "mode", "phase"})
	m.families[nodeAttempts] = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drydock_node_repair_attempts", Help: "Attempts of the repair that the node has on record, by step and result: running, or failed, which means that the attempt did not cure the node.",
	}, []string{"node", "policy", "step", "result"})
	m.families[nodeHold] = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drydock_node_hold", Help: "1 for the reason that holds the repair of the node.",
	}, []string{"node", "policy", "reason"})
	m.families[nodeSign] = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drydock_node_sign", Help: "1 for the last reading of a sign of the policy's witness, for a node with a repair or a hold: the answer (ill, well, unknown) and its reason.",
	}, []string{"node", "policy", "sign", "answer", "reason"})
	m.families[sidecarHealth] = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drydock_sidecar_health", Help: "1 for the result of the last probe of the pod's sidecar: ready, not_ready, unreachable, probe_error. A sidecar without a repair or an alert has no series; at most 1,000 sidecars have one.",
	}, []string{"namespace", "pod", "node", "policy", "outcome"})
	return m
}

func (m *nodeMetrics) collectors() []prometheus.Collector {
	out := make([]prometheus.Collector, len(m.families))
	for i, f := range m.families {
		out[i] = f
	}
	return out
}

func (m *nodeMetrics) set(is map[nodeSeries]float64) {
	for of := range m.was {
		if _, still := is[of]; !still {
			m.families[of.family].DeleteLabelValues(of.values()...)
			delete(m.was, of)
		}
	}
	for of, value := range is {
		if was, shown := m.was[of]; !shown || was != value {
			m.families[of.family].WithLabelValues(of.values()...).Set(value)
			m.was[of] = value
		}
	}
}

func (m *nodeMetrics) reset() {
	for _, f := range m.families {
		f.Reset()
	}
	clear(m.was)
}

func (s nodeSeries) values() []string {
	return s.labels[:[nodeFamilies]int{nodePhase: 4, nodeAttempts: 4, nodeHold: 3, nodeSign: 5, sidecarHealth: 5}[s.family]]
}

// show skips nodes whose repair has not begun if mostShown nodes already have series.
func (t *tally) show(samples []nodeSample) {
	if len(samples) == 0 || (t.shown >= mostShown && samples[0].of.family == nodeHold) {
		return
	}
	t.shown++
	for _, s := range samples {
		t.nodes[s.of] = s.value
	}
}

// sidecarOutcomes has the values of the label outcome, as in drydock_sidecar_probes_total.
var sidecarOutcomes = map[sidecar.Health]string{
	sidecar.HealthReady: "ready", sidecar.HealthNotReady: "not_ready", sidecar.HealthUnreachable: "unreachable", sidecar.HealthProbeError: "probe_error",
}

func (t *tally) showSidecar(of *subject, policy string) {
	seen, _ := of.m.seen.(*sidecar.Observation)
	if seen == nil || sidecarOutcomes[seen.Health] == "" || t.gates >= mostShown {
		return
	}
	t.gates++
	pod := remediations.PodNamed(of.Name)
	t.nodes[nodeSeries{sidecarHealth, [5]string{pod.Namespace, pod.Name, of.of.node, policy, sidecarOutcomes[seen.Health]}}] = 1
}

// samples puts the series about the hold first if the repair has not begun, so that show may skip
// it.
func (p *pass) samples(n *corev1.Node, r *remediations.Record, d lifecycle.Decision) (out []nodeSample) {
	add := func(family int, value float64, labels ...string) {
		s := nodeSample{of: nodeSeries{family: family}, value: value}
		copy(s.of.labels[:], labels)
		out = append(out, s)
	}
	begun := r != nil && r.Phase != remediations.PhasePending
	phase := func() {
		if r != nil {
			mode := ""
			if of := p.Config.Policy(r.Policy); of != nil {
				mode = string(of.Mode)
			}
			add(nodePhase, 1, n.Name, r.Policy, mode, string(r.Phase))
		}
	}
	if begun {
		phase()
	}
	if d.Verb == lifecycle.VerbHold {
		policy := ""
		if d.Policy != nil {
			policy = d.Policy.Name
		}
		add(nodeHold, 1, n.Name, policy, string(d.Reason))
	}
	if !begun {
		phase()
	}
	for of, count := range attemptsOf(r) {
		add(nodeAttempts, float64(count), n.Name, r.Policy, of[0], of[1])
	}
	if len(out) == 0 {
		return nil
	}
	for _, said := range p.said(n, r, d) {
		add(nodeSign, 1, n.Name, said.policy, said.Sign.Label(), string(said.Answer), cmp.Or(said.Reason, string(said.Answer)))
	}
	return out
}

// attemptsOf calls the last attempt "running" until the repair continues or ends.
func attemptsOf(r *remediations.Record) map[[2]string]int {
	out := map[[2]string]int{}
	if r == nil {
		return out
	}
	for i, a := range r.Done {
		result := "failed"
		if i == len(r.Done)-1 && r.Phase.InFlight() {
			result = "running"
		}
		out[[2]string{a.Name, result}]++
	}
	return out
}

type policySaid struct {
	signs.Said
	policy string
}

func (p *pass) said(n *corev1.Node, r *remediations.Record, d lifecycle.Decision) (out []policySaid) {
	of := d.Policy
	if of == nil && r != nil {
		of = p.Config.Policy(r.Policy)
	}
	if of == nil || of.Witness == nil {
		return nil
	}
	for _, s := range signs.Weigh(of.Witness.Signs, remediations.WithGPUsBefore(n, r, p.ledger.GPUsOf(n)), p.remember(n.Name).read, p.now.Add(-signShown), p.now).Said {
		out = append(out, policySaid{s, of.Name})
	}
	return out
}
