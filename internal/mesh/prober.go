package mesh

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/internal/mesh/probe"
)

const (
	// atOnce bounds the simultaneous probes, two per target.
	atOnce = 64
	// pace is the shortest time between the starts of two targets' probes: in any mesh, an agent
	// opens at most 200 flows a second.
	pace = 10 * time.Millisecond
	// remembered is how many rounds a result is valid. A target that is probed at least every third
	// round always has one.
	remembered = 3
	// jitter is the fraction of the interval that a round may start earlier or later.
	jitter = 0.2
)

// Ask makes one probe of the agent at an address, which should be on the node.
type Ask func(ctx context.Context, p probe.Proto, to netip.AddrPort, node string) probe.Result

// ProberOptions configure what a Prober probes, and how.
type ProberOptions struct {
	// Topology returns the current topology. Empty: nothing is known.
	Topology func() Topology
	// Age returns how old the topology is.
	Age func() time.Duration
	Ask Ask
	// Interval is the time between two rounds.
	Interval time.Duration
	// Rand is the source of the jitter.
	Rand *rand.Rand
	// Seed chooses where the rotation of members begins.
	Seed maphash.Seed
	// Registerer registers the metrics. Nil: they are not registered.
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Prober probes round after round and keeps the results.
type Prober struct {
	options ProberOptions
	asked   *prometheus.CounterVec

	mu      sync.Mutex
	round   uint64
	targets int
	results map[pair]result
}

// pair is the key of one result.
type pair struct {
	node  string
	proto probe.Proto
}

// word is the latest result. It is about the path between two locations, to a leader or to a node
// behind one. Another path means another result.
type result struct {
	from, to string
	role     Role // the far end's role
	ok       bool
	took     time.Duration
	round    uint64
}

// NewProber makes a Prober. It does not probe yet.
func NewProber(o ProberOptions) (*Prober, error) {
	p := &Prober{options: o, results: map[pair]result{}, asked: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drydock_mesh_probes_total",
		Help: "Probes made by the agent, by result: no_result means that the probe shows nothing about forwarding.",
	}, []string{"proto", "result"})}
	for _, proto := range probe.Protos() {
		for _, outcome := range probe.Outcomes() {
			p.asked.WithLabelValues(string(proto), string(outcome))
		}
	}
	if o.Registerer == nil {
		return p, nil
	}
	for _, c := range []prometheus.Collector{p.asked, collector{p}} {
		if err := o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the probes' metrics: %w", err)
		}
	}
	return p, nil
}

// Start makes rounds until ctx ends. The first round starts at a random time within the interval,
// so that agents that start together do not probe together.
func (p *Prober) Start(ctx context.Context) error {
	wait := time.Duration(p.options.Rand.Float64() * float64(p.options.Interval))
	next := time.NewTimer(wait)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		began := time.Now()
		p.Round(ctx)
		wait = time.Duration((1 - jitter + 2*jitter*p.options.Rand.Float64()) * float64(p.options.Interval))
		next.Reset(max(0, wait-time.Since(began)))
	}
}

// Round probes this round's targets and returns when all have answered or timed out.
func (p *Prober) Round(ctx context.Context) {
	t := p.options.Topology()
	round, targets := p.begin(t)
	var group errgroup.Group
	group.SetLimit(atOnce / len(probe.Protos()))
	for i, name := range targets {
		if i > 0 && !pause(ctx, pace) {
			break
		}
		group.Go(func() error {
			tcp, udp := p.ask(ctx, t.Nodes[name])
			p.note(t, round, name, probe.TCP, tcp)
			p.note(t, round, name, probe.UDP, udp)
			return nil
		})
	}
	_ = group.Wait() // probes return results, not errors
	p.forget(round)
}

// ask probes over both protocols at the same time, because one result may change the other.
func (p *Prober) ask(ctx context.Context, n Node) (tcp, udp probe.Result) {
	var other sync.WaitGroup
	other.Go(func() { udp = p.options.Ask(ctx, probe.UDP, n.Agent, n.Name) })
	tcp = p.options.Ask(ctx, probe.TCP, n.Agent, n.Name)
	other.Wait()
	return probe.Weigh(tcp, udp)
}

// begin starts a round.
func (p *Prober) begin(t Topology) (round uint64, targets []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	targets = Targets(t, p.round, p.options.Seed)
	p.targets = len(targets)
	return p.round, targets
}

// forget drops, at the end of a round, the results that the last rounds have not renewed.
func (p *Prober) forget(round uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, w := range p.results {
		if w.round+remembered <= round {
			delete(p.results, k)
		}
	}
}

// note stores a result. A probe that shows nothing keeps the earlier result until that expires.
func (p *Prober) note(t Topology, round uint64, node string, proto probe.Proto, w probe.Result) {
	p.asked.WithLabelValues(string(proto), string(w.Outcome)).Inc()
	if w.Why != nil {
		p.options.Log.V(1).Info("a probe did not come back", "node", node, "proto", proto, "outcome", w.Outcome, "why", w.Why.Error())
	}
	if w.Outcome == probe.NoResult {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	far := t.Nodes[node]
	p.results[pair{node, proto}] = result{from: t.Nodes[t.Self].Location, to: far.Location, role: far.Role, ok: w.Outcome == probe.OK, took: w.Took, round: round}
}

// pause waits. False: ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
