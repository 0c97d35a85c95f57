package engine

import (
	"cmp"

	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
)

// RepairMetrics are the metrics about repairs. Only the leader sets them, except for repairs of API
// servers, which every replica sets.
type RepairMetrics struct {
	repairs  *prometheus.GaugeVec
	ended    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	steps    *prometheus.CounterVec
	holds    *prometheus.GaugeVec
}

// Over counts a repair that ended.
func (m RepairMetrics) Over(e *remediations.Entry) {
	m.ended.WithLabelValues(e.Policy, string(e.Outcome)).Inc()
	m.duration.WithLabelValues(e.Policy, string(e.Outcome)).Observe(e.Ended.Sub(e.Began).Seconds())
}

// Called counts an attempt by the outcome of its call.
func (m RepairMetrics) Called(step string, outcome remediations.CallOutcome) {
	m.steps.WithLabelValues(step, string(outcome)).Inc()
}

// Show sets the phase and the hold of a policy that has at most one repair. Empty means none.
func (m RepairMetrics) Show(policy string, in remediations.Phase, held remediations.Reason) {
	for _, ph := range phases {
		m.repairs.WithLabelValues(policy, string(ph)).Set(gauge(ph == in))
	}
	for _, reason := range remediations.Reasons {
		m.holds.WithLabelValues(policy, string(reason)).Set(gauge(reason == held))
	}
}

// metrics are about the fleet. Only the leader sets them: rules and dashboards use `max by`.
type metrics struct {
	RepairMetrics
	breaker  *prometheus.GaugeVec
	blind    *prometheus.GaugeVec
	sources  *prometheus.GaugeVec
	gpus     *prometheus.GaugeVec
	leader   prometheus.Gauge
	selfTest selfTestMetrics
	// uncovered has one series for each step in served.
	uncovered *prometheus.GaugeVec
	served    []string
	// gpuNodes is nil before the first series. gpusAt is the version of these numbers.
	gpuNodes map[string]int
	gpusAt   int
	breakers map[string]ledger.BreakerState
	// was is what the gauges show now, or nil before the first pass.
	was   *tally
	nodes nodeMetrics
}

var phases = []remediations.Phase{remediations.PhasePending, remediations.PhaseActing, remediations.PhaseVerifying, remediations.PhaseExhausted}

var callOutcomes = []remediations.CallOutcome{remediations.CallAccepted, remediations.CallRefused, remediations.CallUnknown}

// These are values of the metric's label cause.
const (
	blindAlertmanager = "alertmanager"
	blindLeases       = "leases"
	blindLedger       = "ledger"
	blindNodes        = "nodes"
	blindWrites       = "writes"
	blindStore        = "store"
	blindDenied       = "denied"
	blindCharge       = "charge"
)

// BlindCauses are all values of the label cause of drydock_blind.
var BlindCauses = []string{blindAlertmanager, blindLeases, blindLedger, blindNodes, blindWrites, blindStore, blindDenied, blindCharge}

// NewRepairMetrics registers the metrics, or returns those that are already registered.
func NewRepairMetrics(reg prometheus.Registerer, c *remediations.Config) RepairMetrics {
	m := RepairMetrics{
		repairs: shared(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_repairs_in_progress", Help: "Repairs on record, by policy and phase.",
		}, []string{"policy", "phase"})),
		ended: shared(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drydock_repairs_total", Help: "Repairs that ended, by policy and outcome.",
		}, []string{"policy", "outcome"})),
		duration: shared(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "drydock_repair_duration_seconds", Help: "Time from a repair's beginning to its end.",
			Buckets: []float64{15, 30, 60, 120, 300, 600, 1200, 2400, 4800, 9600},
		}, []string{"policy", "outcome"})),
		steps: shared(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drydock_steps_total", Help: "Attempts that were issued, by step and outcome of the call.",
		}, []string{"step", "outcome"})),
		holds: shared(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_holds", Help: "Repairs held by a guard, by policy and reason.",
		}, []string{"policy", "reason"})),
	}
	for _, policy := range c.PolicyNames() {
		for _, o := range remediations.Outcomes {
			m.ended.WithLabelValues(policy, string(o))
			m.duration.WithLabelValues(policy, string(o))
		}
	}
	steps := slices.Collect(maps.Keys(c.Provided))
	if c.Provided["promote-leader"] {
		steps = append(steps, putBackStep)
	}
	for _, step := range steps {
		for _, o := range callOutcomes {
			m.steps.WithLabelValues(step, string(o))
		}
	}
	return m
}

func shared[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	var there prometheus.AlreadyRegisteredError
	if err := reg.Register(c); errors.As(err, &there) {
		return there.ExistingCollector.(C)
	} else if err != nil {
		panic(err) // a mistake in this package: two different metrics have the same name
	}
	return c
}

func newMetrics(reg prometheus.Registerer, c *remediations.Config) *metrics {
	m := &metrics{
		RepairMetrics: NewRepairMetrics(reg, c),
		breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_breaker_state", Help: "1 for the state that the breaker of the scope is in.",
		}, []string{"scope", "state"}),
		blind: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_blind", Help: "1 while Drydock cannot see or write what a repair needs, by cause.",
		}, []string{"cause"}),
		sources: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_source_last_answer_timestamp_seconds", Help: "When the source last answered; loop: when Drydock last went through all nodes.",
		}, []string{"source"}),
		gpus: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drydock_node_expected_gpus", Help: "GPUs that the node has by its label nvidia.com/gpu.count, or the most that Drydock saw on its machine.",
		}, []string{"node"}),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "drydock_leader", Help: "1 on the replica that leads.",
		}),
		selfTest: newSelfTestMetrics(), uncovered: newUncoveredMetric(), served: servedSteps(c), nodes: newNodeMetrics(),
	}
	reg.MustRegister(m.nodes.collectors()...)
	reg.MustRegister(m.breaker, m.blind, m.sources, m.gpus, m.leader, m.selfTest.state, m.selfTest.arrival, m.uncovered)
	return m
}

type tally struct {
	repairs map[[2]string]int
	holds   map[[2]string]int
	// sidecars are the pods whose sidecars ran out of attempts, with the pod's node.
	sidecars map[string]string
	// shown counts the nodes that have series, gates the sidecars.
	nodes        map[nodeSeries]float64
	shown, gates int
}

func newTally() *tally {
	return &tally{repairs: map[[2]string]int{}, holds: map[[2]string]int{}, sidecars: map[string]string{}, nodes: map[nodeSeries]float64{}}
}

func (m *metrics) set(c *remediations.Config, t *tally, f *fleet.Fleet, blind map[string]bool) {
	if m.was == nil {
		m.was = newTally()
		for _, policy := range c.PolicyNames() {
			if p := c.Policy(policy); p != nil && p.Kind == remediations.KindAPIServer {
				continue // the rescue sets the series of these policies
			}
			for _, ph := range phases {
				m.was.repairs[[2]string{policy, string(ph)}] = -1
			}
			for _, r := range remediations.Reasons {
				m.was.holds[[2]string{policy, string(r)}] = -1
			}
		}
	}
	setAll(m.repairs, m.was.repairs, t.repairs)
	setAll(m.holds, m.was.holds, t.holds)
	m.nodes.set(t.nodes)
	m.setBreakers(f.Breakers)
	for cause, is := range blind {
		m.blind.WithLabelValues(cause).Set(gauge(is))
	}
	m.setGPUs(f)
}

func (m *metrics) answered(source string, at time.Time) {
	m.sources.WithLabelValues(source).Set(float64(at.Unix()))
}

// setAll skips series that did not change: setting hundreds of series would be most of the cost of
// a pass. It updates was, which holds the series that are not zero.
func setAll(g *prometheus.GaugeVec, was, is map[[2]string]int) {
	for k := range was {
		if is[k] == 0 {
			g.WithLabelValues(k[0], k[1]).Set(0)
			delete(was, k)
		}
	}
	for k, now := range is {
		if before, known := was[k]; !known || before != now {
			g.WithLabelValues(k[0], k[1]).Set(float64(now))
			was[k] = now
		}
	}
}

// setGPUs updates the series in place. If it removed and set them again, a scrape in between could
// miss a node, and an alert on a missing GPU would look resolved.
func (m *metrics) setGPUs(f *fleet.Fleet) {
	if m.gpusAt == f.GPUsVersion() && m.gpuNodes != nil {
		return
	}
	for node := range m.gpuNodes {
		if _, ok := f.ExpectedGPUs[node]; !ok {
			m.gpus.DeleteLabelValues(node)
		}
	}
	for node, n := range f.ExpectedGPUs {
		m.gpus.WithLabelValues(node).Set(float64(n))
	}
	m.gpuNodes, m.gpusAt = f.ExpectedGPUs, f.GPUsVersion()
}

// setBreakers updates in place, so that no scrape misses a series. The whole cluster always has
// one.
func (m *metrics) setBreakers(breakers map[string]ledger.Breaker) {
	is := map[string]ledger.BreakerState{ledger.ScopeCluster: ledger.BreakerClosed}
	for scope, b := range breakers {
		is[scope] = cmp.Or(b.State, ledger.BreakerClosed)
	}
	for scope := range m.breakers {
		if _, still := is[scope]; !still {
			m.breaker.DeletePartialMatch(prometheus.Labels{"scope": scope})
		}
	}
	for scope, state := range is {
		if m.breakers[scope] == state {
			continue
		}
		for _, s := range ledger.BreakerStates {
			m.breaker.WithLabelValues(scope, string(s)).Set(gauge(s == state))
		}
	}
	m.breakers = is
}

func (m *metrics) reset() {
	for _, g := range []*prometheus.GaugeVec{m.repairs, m.holds, m.breaker, m.blind, m.sources, m.gpus, m.selfTest.state, m.selfTest.arrival, m.uncovered} {
		g.Reset()
	}
	m.nodes.reset()
	m.was, m.gpuNodes, m.breakers = nil, nil, nil
	m.leader.Set(0)
}

func gauge(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
