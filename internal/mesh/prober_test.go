package mesh

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/atonce"
	"drydock.dev/drydock/internal/mesh/probe"
)

// world is the Prober's environment in a test.
type world struct {
	registry *prometheus.Registry
	*Prober

	mu       sync.Mutex
	topology Topology
	age      time.Duration
	answers  func(p probe.Proto, node string) probe.Result
	asked    []string
}

func fine(probe.Proto, string) probe.Result {
	return probe.Result{Outcome: probe.OK, Took: 20 * time.Millisecond}
}

func lost(probe.Proto, string) probe.Result {
	return probe.Result{Outcome: probe.Lost, Why: errors.New("nobody answers")}
}

func newWorld(t *testing.T, top Topology) *world {
	t.Helper()
	w := &world{registry: prometheus.NewRegistry(), topology: top, answers: fine}
	p, err := NewProber(ProberOptions{
		Topology: w.current, Age: func() time.Duration { return w.age }, Interval: 10 * time.Second,
		Ask: func(_ context.Context, p probe.Proto, _ netip.AddrPort, node string) probe.Result {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, node)
			return w.answers(p, node)
		},
		Rand: rand.New(rand.NewPCG(1, 2)), Seed: maphash.MakeSeed(), Registerer: w.registry, Log: logr.Discard(),
	})
	require.NoError(t, err)
	w.Prober = p
	return w
}

func (w *world) current() Topology {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.topology
}

func (w *world) set(top Topology) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.topology = top
}

// series returns the values of drydock_mesh_probe_success over TCP, by "path src(role)
// dst(location, role)".
func (w *world) series(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := w.registry.Gather() // Gather fails if two series have the same labels
	require.NoError(t, err)
	out := map[string]float64{}
	pairs := map[string]bool{}
	for _, f := range families {
		if f.GetName() != "drydock_mesh_probe_success" {
			continue
		}
		for _, m := range f.GetMetric() {
			l := map[string]string{}
			for _, p := range m.GetLabel() {
				l[p.GetName()] = p.GetValue()
			}
			pair := l["proto"] + l["src_node"] + l["dst_node"]
			require.False(t, pairs[pair], "two series of the pair %s", pair)
			pairs[pair] = true
			if l["proto"] == "tcp" {
				out[fmt.Sprintf("%s %s(%s) %s(%s, %s)", l["path"], l["src_node"], l["src_role"], l["dst_node"], l["dst_location"], l["dst_role"])] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func TestTheMetricsAreTheContracts(t *testing.T) {
	w := newWorld(t, grid("l000-001", 2, 2))
	w.age = 42 * time.Second
	w.answers = func(p probe.Proto, node string) probe.Result {
		if p == probe.UDP && node == "l001-001" {
			return lost(p, node)
		}
		return fine(p, node)
	}
	w.Round(t.Context())
	require.NoError(t, testutil.GatherAndCompare(w.registry, strings.NewReader(`
# HELP drydock_mesh_agent_nodes_without_location Nodes that Kilo counts and that have no location: no agent probes them.
# TYPE drydock_mesh_agent_nodes_without_location gauge
drydock_mesh_agent_nodes_without_location 0
# HELP drydock_mesh_agent_peers Other nodes that have an agent.
# TYPE drydock_mesh_agent_peers gauge
drydock_mesh_agent_peers 3
# HELP drydock_mesh_agent_targets Nodes probed in the last round.
# TYPE drydock_mesh_agent_targets gauge
drydock_mesh_agent_targets 3
# HELP drydock_mesh_agent_topology_age_seconds Time since the agent last saw a change of any Node. Kilo's agents write theirs every 30 s.
# TYPE drydock_mesh_agent_topology_age_seconds gauge
drydock_mesh_agent_topology_age_seconds 42
# HELP drydock_mesh_probe_duration_seconds Time that the last probe took, if it succeeded.
# TYPE drydock_mesh_probe_duration_seconds gauge
drydock_mesh_probe_duration_seconds{dst_location="l000",dst_node="l000-000",dst_role="leader",path="local",proto="tcp",src_location="l000",src_node="l000-001",src_role="member"} 0.02
drydock_mesh_probe_duration_seconds{dst_location="l000",dst_node="l000-000",dst_role="leader",path="local",proto="udp",src_location="l000",src_node="l000-001",src_role="member"} 0.02
drydock_mesh_probe_duration_seconds{dst_location="l001",dst_node="l001-000",dst_role="leader",path="cross",proto="tcp",src_location="l000",src_node="l000-001",src_role="member"} 0.02
drydock_mesh_probe_duration_seconds{dst_location="l001",dst_node="l001-000",dst_role="leader",path="cross",proto="udp",src_location="l000",src_node="l000-001",src_role="member"} 0.02
drydock_mesh_probe_duration_seconds{dst_location="l001",dst_node="l001-001",dst_role="member",path="cross",proto="tcp",src_location="l000",src_node="l000-001",src_role="member"} 0.02
# HELP drydock_mesh_probe_success 1 if a small and a large payload came back over a new flow in one of the last three rounds, 0 if not. A target without a result has no series.
# TYPE drydock_mesh_probe_success gauge
drydock_mesh_probe_success{dst_location="l000",dst_node="l000-000",dst_role="leader",path="local",proto="tcp",src_location="l000",src_node="l000-001",src_role="member"} 1
drydock_mesh_probe_success{dst_location="l000",dst_node="l000-000",dst_role="leader",path="local",proto="udp",src_location="l000",src_node="l000-001",src_role="member"} 1
drydock_mesh_probe_success{dst_location="l001",dst_node="l001-000",dst_role="leader",path="cross",proto="tcp",src_location="l000",src_node="l000-001",src_role="member"} 1
drydock_mesh_probe_success{dst_location="l001",dst_node="l001-000",dst_role="leader",path="cross",proto="udp",src_location="l000",src_node="l000-001",src_role="member"} 1
drydock_mesh_probe_success{dst_location="l001",dst_node="l001-001",dst_role="member",path="cross",proto="tcp",src_location="l000",src_node="l000-001",src_role="member"} 1
drydock_mesh_probe_success{dst_location="l001",dst_node="l001-001",dst_role="member",path="cross",proto="udp",src_location="l000",src_node="l000-001",src_role="member"} 0
# HELP drydock_mesh_probes_total Probes by the agent, by result: no_result means that the probe shows nothing about forwarding.
# TYPE drydock_mesh_probes_total counter
drydock_mesh_probes_total{proto="tcp",result="lost"} 0
drydock_mesh_probes_total{proto="tcp",result="no_result"} 0
drydock_mesh_probes_total{proto="tcp",result="ok"} 3
drydock_mesh_probes_total{proto="udp",result="lost"} 1
drydock_mesh_probes_total{proto="udp",result="no_result"} 0
drydock_mesh_probes_total{proto="udp",result="ok"} 2
`)))
}

// TestAResultHasTheCurrentRoles: after a move of the leadership, earlier results about both leaders
// are dropped before the next round. A result about a leader shows nothing about the same node as a
// member.
func TestAResultHasTheCurrentRoles(t *testing.T) {
	top := func(change func(nodes map[string]Node)) Topology {
		g := grid("l000-001", 2, 2)
		change(g.Nodes)
		return g
	}
	role := func(nodes map[string]Node, name string, r Role) {
		n := nodes[name]
		n.Role = r
		nodes[name] = n
	}
	w := newWorld(t, top(func(map[string]Node) {}))
	w.answers = lost
	w.Round(t.Context())
	require.Equal(t, map[string]float64{
		"local l000-001(member) l000-000(l000, leader)": 0,
		"cross l000-001(member) l001-000(l001, leader)": 0,
		"cross l000-001(member) l001-001(l001, member)": 0,
	}, w.series(t))

	w.set(top(func(n map[string]Node) { role(n, "l001-000", Member); role(n, "l001-001", Leader) }))
	moved := map[string]float64{
		"local l000-001(member) l000-000(l000, leader)": 0,
		"cross l000-001(member) l001-000(l001, member)": 0,
		"cross l000-001(member) l001-001(l001, leader)": 0,
	}
	require.Equal(t, map[string]float64{"local l000-001(member) l000-000(l000, leader)": 0}, w.series(t))
	w.Round(t.Context())
	require.Equal(t, moved, w.series(t), "and there is none of the roles before")

	w.set(top(func(n map[string]Node) { role(n, "l000-001", Leader); role(n, "l000-000", Member) }))
	require.Empty(t, w.series(t))
	w.Round(t.Context())
	w.set(top(func(map[string]Node) {}))
	require.Contains(t, w.series(t), "cross l000-001(member) l001-000(l001, leader)", "the own role is that of now, whatever it was")
}

// TestAWordIsAboutAWay: if a node has moved, is gone, or is no longer counted, its result is
// dropped.
func TestAWordIsAboutAWay(t *testing.T) {
	w := newWorld(t, grid("l000-001", 3, 1))
	top := grid("l000-000", 3, 1)
	w.set(top)
	w.Round(t.Context())
	require.Len(t, w.series(t), 2)

	moved := grid("l000-000", 3, 1)
	n := moved.Nodes["l001-000"]
	n.Location = "l000"
	moved.Nodes[n.Name] = n
	delete(moved.Nodes, "l002-000")
	w.set(moved)
	require.Empty(t, w.series(t))

	delete(top.Nodes, "l000-000")
	w.set(top)
	require.Empty(t, w.series(t), "this node itself is not counted any more")
}

func TestAWordIsForgottenAfterThreeRounds(t *testing.T) {
	w := newWorld(t, grid("l000-001", 2, 2))
	w.Round(t.Context())
	gone := grid("l000-001", 2, 2)
	n := gone.Nodes["l001-001"]
	n.Agent = netip.AddrPort{}
	gone.Nodes[n.Name] = n
	w.set(gone)
	probed := "cross l000-001(member) l001-001(l001, member)"
	for range remembered - 1 {
		w.Round(t.Context())
		require.Contains(t, w.series(t), probed)
	}
	w.Round(t.Context())
	require.NotContains(t, w.series(t), probed)
	require.Len(t, w.series(t), 2)
}

// TestSeriesAreBoundedByLocations: for any number of members and any length of time.
func TestSeriesAreBoundedByLocations(t *testing.T) {
	w := newWorld(t, grid("l000-001", 3, 60))
	for range 20 {
		w.Round(t.Context())
		require.LessOrEqual(t, len(w.series(t)), 2*(1+remembered)+1+siblingsARound*remembered)
	}
}

// TestNoResultIsNotAFailure: an inconclusive probe keeps the earlier result until that expires.
func TestNoResultIsNotAFailure(t *testing.T) {
	w := newWorld(t, grid("l000-001", 2, 2))
	w.Round(t.Context())
	before := w.series(t)
	w.answers = func(probe.Proto, string) probe.Result {
		return probe.Result{Outcome: probe.NoResult, Why: errors.New("connection refused")}
	}
	for range remembered - 1 {
		w.Round(t.Context())
		require.Equal(t, before, w.series(t))
	}
	w.Round(t.Context())
	require.Empty(t, w.series(t))
}

// TestSilenceOverUDPGivesNoResultWithoutTCP: the agent hangs, or has another key or clock. If
// neither protocol has an answer, the path is faulty.
func TestSilenceOverUDPGivesNoResultWithoutTCP(t *testing.T) {
	w := newWorld(t, grid("l000-001", 2, 2))
	w.answers = func(p probe.Proto, node string) probe.Result {
		if p == probe.UDP {
			return lost(p, node)
		}
		return probe.Result{Outcome: probe.NoResult, Why: errors.New("nobody answered over the connection")}
	}
	series := func() int {
		n, err := testutil.GatherAndCount(w.registry, "drydock_mesh_probe_success")
		require.NoError(t, err)
		return n
	}
	w.Round(t.Context())
	require.Zero(t, series())
	require.InDelta(t, 3, testutil.ToFloat64(w.Prober.asked.WithLabelValues("udp", "no_result")), 0)
	w.answers = lost
	w.Round(t.Context())
	require.Equal(t, 6, series())
}

// TestRoundsComeWithJitter: about every interval, never at equal distances, and agents do not all
// start at once.
func TestRoundsComeWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, grid("l000-001", 1, 2))
		began := time.Now()
		var times []time.Duration
		w.answers = func(p probe.Proto, node string) probe.Result {
			if p == probe.TCP {
				times = append(times, time.Since(began))
			}
			return fine(p, node)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Start(ctx) }()
		time.Sleep(1000 * time.Second)
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended)
		require.InDelta(t, 100, len(times), 5)
		require.Less(t, times[0], 10*time.Second)
		distances := map[time.Duration]bool{}
		for i, at := range times[1:] {
			d := at - times[i]
			require.InDelta(t, 10, d.Seconds(), 2.01)
			distances[d] = true
		}
		require.Greater(t, len(distances), 50)
	})
}

// TestARoundIsPacedAndBounded: also if no node of the mesh answers.
func TestARoundIsPacedAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, grid("l000-001", 60, 9))
		var asked atonce.Count
		w.options.Ask = func(context.Context, probe.Proto, netip.AddrPort, string) probe.Result {
			asked.Enter()
			defer asked.Leave()
			time.Sleep(2 * time.Second)
			return probe.Result{Outcome: probe.Lost, Why: errors.New("nobody answers")}
		}
		began := time.Now()
		w.Round(t.Context())
		require.LessOrEqual(t, asked.Most(), atOnce)
		require.Less(t, time.Since(began), 8*time.Second, "a round is over before the next")
		require.GreaterOrEqual(t, time.Since(began), 30*pace)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began = time.Now()
		w.Round(ctx)
		require.Less(t, time.Since(began), 3*time.Second)
	})
}
