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
	// atOnce is how many probes run at the same time, two for each target.
	atOnce = 64
	// pace is the shortest time between the probes of two targets. So an agent opens at most 200
	// flows a second.
	pace = 10 * time.Millisecond
	// A result stays valid for three rounds, so a target that is probed at least every third round
	// always has one.
	remembered = 3
	// jitter is a fraction of the interval.
	jitter = 0.2
)

// Ask makes one probe. to and node are the agent's address and the name of its node.
type Ask func(ctx context.Context, p probe.Proto, to netip.AddrPort, node string) probe.Result

// ProberOptions configure a Prober.
type ProberOptions struct {
	// Topology may be empty while nothing is known.
	Topology func() Topology
	// Age is the time since the last event of a Node.
	Age      func() time.Duration
	Ask      Ask
	Interval time.Duration
	// Rand is for the jitter.
	Rand *rand.Rand
	// Seed decides which member of a location this agent probes first.
	Seed maphash.Seed
	// Registerer may be nil.
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Prober makes round after round of probes, and keeps the results.
type Prober struct {
	options ProberOptions
	asked   *prometheus.CounterVec

	mu      sync.Mutex
	round   uint64
	targets int
	results map[pair]result
}

type pair struct {
	node  string
	proto probe.Proto
}

// A result becomes invalid when the location of this node changes, or the location or role of the
// probed node.
type result struct {
	from, to string
	role     Role // the role of the probed node
	ok       bool
	took     time.Duration
	round    uint64
}

// NewProber returns a Prober that does not probe yet.
func NewProber(o ProberOptions) (*Prober, error) {
	p := &Prober{options: o, results: map[pair]result{}, asked: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drydock_mesh_probes_total",
		Help: "Probes by the agent, by result: no_result means that the probe shows nothing about forwarding.",
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

// Start makes rounds until ctx ends. The first one starts at a random time within the interval, so
// that agents which start together do not probe together.
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

// Round makes one round of probes. It returns when every target has answered or timed out.
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
	_ = group.Wait() // probes return no errors
	p.forget(round)
}

// Weigh compares the two results, because the one over TCP may change the one over UDP.
func (p *Prober) ask(ctx context.Context, n Node) (tcp, udp probe.Result) {
	var other sync.WaitGroup
	other.Go(func() { udp = p.options.Ask(ctx, probe.UDP, n.Agent, n.Name) })
	tcp = p.options.Ask(ctx, probe.TCP, n.Agent, n.Name)
	other.Wait()
	return probe.Weigh(tcp, udp)
}

func (p *Prober) begin(t Topology) (round uint64, targets []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	targets = Targets(t, p.round, p.options.Seed)
	p.targets = len(targets)
	return p.round, targets
}

func (p *Prober) forget(round uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, w := range p.results {
		if w.round+remembered <= round {
			delete(p.results, k)
		}
	}
}

// After an inconclusive probe, the earlier result stays until it expires.
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
