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
	// atOnce bounds the probes under way at the same time, two of each target.
	atOnce = 64
	// pace is the least time between the begins of two targets' probes: whatever the mesh looks like, an agent opens no
	// more than 200 flows a second.
	pace = 10 * time.Millisecond
	// remembered is how many rounds a word is good for. Whoever is asked every third round or more often has one always.
	remembered = 3
	// jitter is the part of the interval by which a round may come sooner or later.
	jitter = 0.2
)

// Ask makes one probe of the agent at an address, which should be that of the node.
type Ask func(ctx context.Context, p probe.Proto, to netip.AddrPort, node string) probe.Word

// ProberOptions say whom a Prober asks, and how.
type ProberOptions struct {
	// Topology is the one of now; empty where nothing is known.
	Topology func() Topology
	// Age is how old that is.
	Age func() time.Duration
	Ask Ask
	// Interval between two rounds.
	Interval time.Duration
	// Rand gives the jitter.
	Rand *rand.Rand
	// Seed chooses where the turns of members begin.
	Seed maphash.Seed
	// Registerer takes the metrics; nil: nobody does.
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Prober asks round after round and keeps the words.
type Prober struct {
	options ProberOptions
	asked   *prometheus.CounterVec

	mu      sync.Mutex
	round   uint64
	targets int
	words   map[pair]word
}

// pair is what there is one word on.
type pair struct {
	node  string
	proto probe.Proto
}

// word is what was learnt last. It is on the way between two locations, to a leader or to what is behind one: another way,
// another word.
type word struct {
	from, to string
	role     Role // of the far end
	ok       bool
	took     time.Duration
	round    uint64
}

// NewProber makes a Prober. Nothing is asked yet.
func NewProber(o ProberOptions) (*Prober, error) {
	p := &Prober{options: o, words: map[pair]word{}, asked: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drydock_mesh_probes_total",
		Help: "Probes made by the agent, by what they said of forwarding: no_word means that nothing was learnt.",
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

// Start makes rounds until ctx ends. The first comes at a random time of the interval, so that agents that start together
// do not ask together.
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

// Round asks this round's targets and returns when all have answered or have not.
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
	_ = group.Wait() // probes give words, not errors
	p.forget(round)
}

// ask asks over both protocols at one time: what one says is weighed by the other.
func (p *Prober) ask(ctx context.Context, n Node) (tcp, udp probe.Word) {
	var other sync.WaitGroup
	other.Go(func() { udp = p.options.Ask(ctx, probe.UDP, n.Agent, n.Name) })
	tcp = p.options.Ask(ctx, probe.TCP, n.Agent, n.Name)
	other.Wait()
	return probe.Weigh(tcp, udp)
}

// begin opens a round.
func (p *Prober) begin(t Topology) (round uint64, targets []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	targets = Targets(t, p.round, p.options.Seed)
	p.targets = len(targets)
	return p.round, targets
}

// forget drops at a round's end the words that it and those before it have not renewed.
func (p *Prober) forget(round uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, w := range p.words {
		if w.round+remembered <= round {
			delete(p.words, k)
		}
	}
}

// note keeps what was learnt. Where nothing was, what was learnt before stays until its time is over.
func (p *Prober) note(t Topology, round uint64, node string, proto probe.Proto, w probe.Word) {
	p.asked.WithLabelValues(string(proto), string(w.Outcome)).Inc()
	if w.Why != nil {
		p.options.Log.V(1).Info("a probe did not come back", "node", node, "proto", proto, "outcome", w.Outcome, "why", w.Why.Error())
	}
	if w.Outcome == probe.NoWord {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	far := t.Nodes[node]
	p.words[pair{node, proto}] = word{from: t.Nodes[t.Self].Location, to: far.Location, role: far.Role, ok: w.Outcome == probe.OK, took: w.Took, round: round}
}

// pause waits; false: ctx ended first.
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
