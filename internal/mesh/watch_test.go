package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/mesh/probe"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// site is a test's own mesh in the shared API server: Nodes whose names begin with its prefix, and
// a Service.
type site struct {
	*testing.T
	client  kubernetes.Interface
	lab     *lab.Lab
	service string
}

func newSite(t *testing.T) *site {
	t.Helper()
	l := lab.Shared(t)
	s := &site{T: t, lab: l, client: l.Client(), service: strings.ToLower(t.Name())}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, s.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		require.NoError(t, s.client.DiscoveryV1().EndpointSlices("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.service}))
	})
	return s
}

func (s *site) add(nodes ...*corev1.Node) {
	s.Helper()
	for _, n := range nodes {
		_, err := s.client.CoreV1().Nodes().Create(s.Context(), n, metav1.CreateOptions{})
		require.NoError(s, err)
	}
}

// annotate sets annotations, and removes those that are nil.
func (s *site) annotate(node string, annotations map[string]any) {
	s.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	require.NoError(s, err)
	_, err = s.client.CoreV1().Nodes().Patch(s.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(s, err)
}

// living is a Node that Kilo counts for as long as a test may take on a busy machine: Kilo only
// checks the age of the last check-in.
func living(name, location string, change ...func(*corev1.Node)) *corev1.Node {
	return kiloNode(name, location, time.Now().Add(time.Hour), change...)
}

// slice writes an EndpointSlice of the Service: node and address of each endpoint.
func (s *site) slice(name string, family discoveryv1.AddressType, port int32, endpoints map[string]string, change ...func(*discoveryv1.Endpoint)) {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: s.service + "-" + name, Labels: map[string]string{discoveryv1.LabelServiceName: s.service}},
		AddressType: family,
	}
	if port != 0 {
		slice.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("probe-tcp"), Port: &port}}
	}
	for node, address := range endpoints {
		e := discoveryv1.Endpoint{Addresses: []string{address}, NodeName: &node}
		for _, c := range change {
			c(&e)
		}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	_, err := s.client.DiscoveryV1().EndpointSlices("default").Create(s.Context(), slice, metav1.CreateOptions{})
	require.NoError(s, err)
}

// watch runs a Watch of the node until the test ends. Its log lines go to say.
func (s *site) watch(node string, change ...func(*WatchOptions)) *Watch {
	s.Helper()
	o := WatchOptions{
		Config: s.lab.AdminConfig(), Node: node, Namespace: "default", Service: s.service, Port: 9099,
		TopologyLabel: election.DefaultTopologyLabel, Now: time.Now, Log: logr.Discard(),
	}
	for _, c := range change {
		c(&o)
	}
	w, err := NewWatch(o)
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	s.Cleanup(func() { cancel(); require.NoError(s, <-ended) })
	return w
}

// leaders returns the leader of each location, according to the Watch.
func leaders(w *Watch) map[string]string {
	out := map[string]string{}
	for _, n := range w.Topology().Nodes {
		if n.Role == Leader {
			out[n.Location] = n.Name
		}
	}
	return out
}

func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 2*time.Minute, 20*time.Millisecond, what)
}

func TestTheWatchFollowsNodesAndSlices(t *testing.T) {
	s := newSite(t)
	s.add(living("a1", "a"), living("a2", "a"), living("b1", "b"), living("b2", "b"))
	s.slice("v4", discoveryv1.AddressTypeIPv4, 0, map[string]string{"a1": "10.99.0.11", "b1": "10.99.0.21"})
	s.slice("v6", discoveryv1.AddressTypeIPv6, 7777, map[string]string{"a1": "fd00::11", "b1": "fd00::21", "b2": "fd00::22"})
	s.slice("leaving", discoveryv1.AddressTypeIPv4, 0, map[string]string{"a2": "10.99.0.12"}, func(e *discoveryv1.Endpoint) { e.Conditions.Terminating = ptr.To(true) })
	s.slice("unready", discoveryv1.AddressTypeIPv4, 0, map[string]string{"b2": "10.99.0.22"}, func(e *discoveryv1.Endpoint) { e.Conditions.Ready = ptr.To(false) })
	w := s.watch("a1")
	within(t, "the first topology", func() bool { return w.Ready() == nil })
	require.Equal(t, map[string]string{"a": "a1", "b": "b1"}, leaders(w))
	agents := map[string]string{}
	for _, n := range w.Topology().Nodes {
		agents[n.Name] = n.Agent.String()
	}
	require.Equal(t, map[string]string{"a1": "10.99.0.11:9099", "a2": "invalid AddrPort", "b1": "10.99.0.21:9099", "b2": "10.99.0.22:9099"}, agents,
		"one that leaves is none; one that is not ready is one")

	s.annotate("b2", map[string]any{election.LeaderKey: ""})
	within(t, "leadership moves", func() bool { return leaders(w)["b"] == "b2" })
	s.annotate("b2", map[string]any{election.LeaderKey: nil})
	within(t, "and back", func() bool { return leaders(w)["b"] == "b1" })
	s.annotate("b2", map[string]any{election.LocationKey: "c"})
	within(t, "a node moves", func() bool { return leaders(w)["c"] == "b2" })
	require.NoError(t, s.client.CoreV1().Nodes().Delete(t.Context(), "b2", metav1.DeleteOptions{}))
	within(t, "a node goes", func() bool { return leaders(w)["c"] == "" })
	require.NoError(t, s.client.DiscoveryV1().EndpointSlices("default").Delete(t.Context(), s.service+"-v4", metav1.DeleteOptions{}))
	within(t, "addresses change", func() bool { return w.Topology().Nodes["b1"].Agent.String() == "[fd00::21]:7777" })
}

// TestWhyANodeTakesNoPart: the reason is logged once and names its object.
func TestWhyANodeTakesNoPart(t *testing.T) {
	s := newSite(t)
	s.add(
		living("placed", "a"), living("nowhere", ""), kiloNode("late", "a", time.Now().Add(-48*time.Hour)),
		living("malformed", "a", annotated(election.PublicKeyKey, "?")),
	)
	for node, want := range map[string]string{
		"placed":    "",
		"nowhere":   "this node has no location: it has neither the annotation kilo.squat.ai/location nor the label topology.kubernetes.io/region",
		"late":      "Kilo does not count this node: its Kilo agent last wrote 48h",
		"malformed": "Kilo does not count this node: it lacks a public key (kilo.squat.ai/key)",
		"nobody":    `there is no Node \"nobody\": set --node-name to the pod's spec.nodeName`,
	} {
		t.Run(node, func(t *testing.T) {
			sub := &site{T: t, client: s.client, lab: s.lab, service: s.service}
			var mu sync.Mutex
			var lines []string
			w := sub.watch(node, func(o *WatchOptions) {
				o.Log = funcr.New(func(_, args string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, args)
				}, funcr.Options{})
			})
			within(t, "the first topology", w.synced.Load)
			for i := range 2 { // events that change nothing
				age := w.Age()
				s.annotate("placed", map[string]any{"example.org/beat": strconv.Itoa(i) + node})
				within(t, "the event arrives", func() bool { return w.Age() < age })
				within(t, "the topology is rebuilt", func() bool { return len(w.changed) == 0 })
			}
			mu.Lock()
			defer mu.Unlock()
			if want == "" {
				require.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], want)
			require.Empty(t, Targets(w.Topology(), 1, maphash.MakeSeed()))
			if node == "nobody" {
				require.ErrorContains(t, w.Ready(), "there is no Node")
			} else {
				require.NoError(t, w.Ready())
			}
			require.Equal(t, []string{"nowhere"}, w.Topology().Unplaced)
		})
	}
}

// yard has the agents of a site on loopback addresses, each with its own registry.
type yard struct {
	*site
	registries map[string]*prometheus.Registry
	stop       context.CancelFunc
	ended      sync.WaitGroup
}

const secret = "0123456789abcdef0123456789abcdef"

// loopback returns the loopback address for an address of an EndpointSlice: the API server refuses
// loopback addresses there.
func loopback(a netip.Addr) netip.Addr {
	if a.Is6() {
		return netip.IPv6Loopback()
	}
	b := a.As4()
	return netip.AddrFrom4([4]byte{127, 0, b[2], b[3]})
}

// startAgents runs an agent for each node at its address, on one port. Their rounds are short.
func (s *site) startAgents(port uint16, addresses map[string]string) *yard {
	s.Helper()
	y := &yard{site: s, registries: map[string]*prometheus.Registry{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	y.stop = func() { cancel(); y.ended.Wait() }
	s.Cleanup(y.stop)
	keys := func() []probe.Key { return []probe.Key{probe.Key(secret)} }
	for node, address := range addresses {
		reg := prometheus.NewRegistry()
		y.registries[node] = reg
		server, err := probe.NewServer(probe.ServerOptions{Listen: netip.AddrPortFrom(loopback(netip.MustParseAddr(address)), port).String(), Node: node, Keys: keys, Now: time.Now, Registerer: reg, Log: logr.Discard()})
		require.NoError(s, err)
		y.ended.Go(func() { require.NoError(s, server.Start(ctx)) })
		<-server.Listening()
		watch := s.watch(node, func(o *WatchOptions) { o.Port = port })
		client := probe.Client{Node: node, Keys: keys, Now: time.Now, Rand: randomBytes{}, Timeout: time.Second}
		prober, err := NewProber(ProberOptions{
			Topology: watch.Topology, Age: watch.Age, Ask: asked(client), Interval: 300 * time.Millisecond,
			Rand: rand.New(rand.NewPCG(rand.Uint64(), 1)), Seed: maphash.MakeSeed(), Registerer: reg, Log: logr.Discard(),
		})
		require.NoError(s, err)
		y.ended.Go(func() { _ = prober.Start(ctx) })
	}
	return y
}

func asked(c probe.Client) Ask {
	return func(ctx context.Context, p probe.Proto, to netip.AddrPort, node string) probe.Result {
		return c.Probe(ctx, p, netip.AddrPortFrom(loopback(to.Addr()), to.Port()), node)
	}
}

type randomBytes struct{}

func (randomBytes) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return len(b), nil
}

var _ io.Reader = randomBytes{}

// gauge is the sum of a metric of a node's agent, over the series with the labels.
func (y *yard) gauge(node, name string, labels map[string]string) (sum float64, series int) {
	families, err := y.registries[node].Gather()
	require.NoError(y, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.GetMetric() {
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			for k, v := range labels {
				if has[k] != v {
					continue metrics
				}
			}
			sum, series = sum+m.GetGauge().GetValue()+m.GetCounter().GetValue(), series+1
		}
	}
	return sum, series
}

// awaitResults waits until an agent has this many successful results, and no failed one.
func (y *yard) awaitResults(node string, good int) {
	y.Helper()
	within(y.T, fmt.Sprintf("%s has %d good words", node, good), func() bool {
		sum, series := y.gauge(node, "drydock_mesh_probe_success", nil)
		return int(sum) == good && series == good
	})
}

// TestProbingContinuesWithoutTheAPIServer: the agent sees the missed changes when the API server is
// back.
func TestProbingContinuesWithoutTheAPIServer(t *testing.T) {
	s := newSite(t)
	port := uint16(freePort(t))
	addresses := map[string]string{"a1": "10.99.0.31", "a2": "10.99.0.32", "b1": "10.99.0.41", "b2": "10.99.0.42"}
	s.add(living("a1", "a"), living("a2", "a"), living("b1", "b"), living("b2", "b"))
	s.slice("v4", discoveryv1.AddressTypeIPv4, 0, addresses)
	y := s.startAgents(port, addresses)
	for node := range addresses {
		y.awaitResults(node, 6) // three others, over TCP and UDP
	}

	apiServer := s.lab.Process("kube-apiserver")
	require.NoError(t, apiServer.Signal(syscall.SIGSTOP))
	back := sync.OnceFunc(func() { require.NoError(t, apiServer.Signal(syscall.SIGCONT)) })
	defer back()
	before, _ := y.gauge("a1", "drydock_mesh_probes_total", map[string]string{"result": "ok"})
	within(t, "probes go on", func() bool {
		now, _ := y.gauge("a1", "drydock_mesh_probes_total", map[string]string{"result": "ok"})
		return now > before+60
	})
	y.awaitResults("a1", 6)
	age, _ := y.gauge("a1", "drydock_mesh_agent_topology_age_seconds", nil)
	require.Greater(t, age, 2.0)
	within(t, "its age is exported", func() bool {
		now, _ := y.gauge("a1", "drydock_mesh_agent_topology_age_seconds", nil)
		return now > age
	})

	back()
	asked := time.Now()
	s.annotate("b2", map[string]any{election.LeaderKey: ""})
	within(t, "the move is seen", func() bool {
		_, series := y.gauge("a1", "drydock_mesh_probe_success", map[string]string{"dst_node": "b2", "dst_role": "leader", "path": "cross"})
		return series == 2
	})
	age, _ = y.gauge("a1", "drydock_mesh_agent_topology_age_seconds", nil)
	require.LessOrEqual(t, age, time.Since(asked).Seconds(), "the age is that of the news")
}

// TestMissingHeartbeatsDoNotRebuildTheTopology: the time of the last Node event decides what Kilo
// counts, so an agent without the API server keeps its topology. With events of other nodes, a
// silent node is no longer counted.
func TestMissingHeartbeatsDoNotRebuildTheTopology(t *testing.T) {
	s := newSite(t)
	var mu sync.Mutex
	ahead := time.Duration(0)
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}
	s.add(kiloNode("a1", "a", time.Now()), kiloNode("a2", "a", time.Now()), kiloNode("b1", "b", time.Now()))
	w := s.watch("a1", func(o *WatchOptions) { o.Now = now })
	within(t, "the first topology", func() bool { return w.Ready() == nil })
	mu.Lock()
	ahead = time.Hour
	mu.Unlock()
	w.notice()
	time.Sleep(2 * settle) // a test that nothing happens must wait
	require.Equal(t, map[string]string{"a": "a1", "b": "b1"}, leaders(w))
	require.Greater(t, w.Age(), 50*time.Minute)

	beat := map[string]any{election.LastSeenKey: strconv.FormatInt(now().Unix(), 10)}
	s.annotate("a2", beat)
	s.annotate("b1", beat)
	within(t, "the silent one is counted out", func() bool {
		l := leaders(w)
		return l["a"] == "a2" && l["b"] == "b1" && w.Age() < time.Minute
	})
}

// TestNewsIsGathered: half of a burst of events is not a topology.
func TestNewsIsGathered(t *testing.T) {
	s := newSite(t)
	s.add(living("a1", "a"), living("a2", "a"))
	w := s.watch("a1")
	within(t, "the first topology", func() bool { return w.Ready() == nil })
	began, topologies := time.Now(), map[*Topology]bool{}
	for i := range 60 {
		s.annotate("a2", map[string]any{"example.org/beat": strconv.Itoa(i)})
		topologies[w.topology.Load()] = true
	}
	require.LessOrEqual(t, len(topologies), 2+int(time.Since(began)/settle))
}

func TestAgentsOverIPv6Alone(t *testing.T) {
	s := newSite(t)
	port := uint16(freePort(t))
	s.add(living("a1", "a"), living("b1", "b"))
	s.slice("v6", discoveryv1.AddressTypeIPv6, int32(port), map[string]string{"a1": "fd00::1", "b1": "fd00::2"})
	y := s.startAgents(port, map[string]string{"b1": "fd00::2"})
	w := s.watch("a1")
	within(t, "the first topology", func() bool { return w.Ready() == nil })
	client := probe.Client{Node: "a1", Keys: func() []probe.Key { return []probe.Key{probe.Key(secret)} }, Now: time.Now, Rand: randomBytes{}}
	for _, p := range probe.Protos() {
		within(t, "an answer over "+string(p), func() bool {
			return asked(client)(t.Context(), p, w.Topology().Nodes["b1"].Agent, "b1").Outcome == probe.OK
		})
	}
	y.stop()
}

// TestAnAgentLeavesNoGoroutine.
func TestAnAgentLeavesNoGoroutine(t *testing.T) {
	s := newSite(t)
	port := uint16(freePort(t))
	addresses := map[string]string{"a1": "10.99.0.51", "b1": "10.99.0.52"}
	s.add(living("a1", "a"), living("b1", "b"))
	s.slice("v4", discoveryv1.AddressTypeIPv4, 0, addresses)
	before := runtime.NumGoroutine()
	t.Run("agents", func(t *testing.T) {
		y := (&site{T: t, client: s.client, lab: s.lab, service: s.service}).startAgents(port, addresses)
		y.awaitResults("a1", 2)
	})
	for deadline := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before+kept; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines are left behind:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// kept is the number of goroutines of client-go's shared connection to the API server, which stays
// open.
const kept = 4

func freePort(t *testing.T) int {
	t.Helper()
	p, err := lab.FreePort()
	require.NoError(t, err)
	return p
}
