package mesh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// After a restart of the watch, the Nodes arrive one by one, and an incomplete list would give a
// wrong topology.
const settle = time.Second

// WatchOptions configure a Watch.
type WatchOptions struct {
	Config *rest.Config
	Node   string
	// Service is the headless Service of the agents, whose EndpointSlices have the agents'
	// addresses.
	Namespace, Service string
	// Port is used if an EndpointSlice has no port.
	Port uint16
	// TopologyLabel has a node's location. Kilo's agents must have the same setting.
	TopologyLabel string
	Now           func() time.Time
	Log           logr.Logger
}

// Watch follows Nodes and EndpointSlices. Without the API server, the last topology stays.
type Watch struct {
	options WatchOptions
	nodes   cache.SharedIndexInformer
	slices  cache.SharedIndexInformer
	// nodesRead and slicesRead report whether the first complete list was processed.
	nodesRead, slicesRead cache.InformerSynced
	changed               chan struct{}

	mu        sync.Mutex
	lastEvent time.Time // when the last Node event arrived

	synced   atomic.Bool
	warned   atomic.Int32 // the cause of the last logged warning
	topology atomic.Pointer[Topology]
}

// NewWatch returns a Watch. It sends no request.
func NewWatch(o WatchOptions) (*Watch, error) {
	w := &Watch{options: o, changed: make(chan struct{}, 1)}
	w.topology.Store(&Topology{Self: o.Node})
	var err error
	if w.nodes, w.slices, err = newInformers(o); err != nil {
		return nil, err
	}
	if w.nodesRead, err = follow(w.nodes, w.noteEvent); err != nil {
		return nil, err
	}
	w.slicesRead, err = follow(w.slices, w.notice)
	return w, err
}

// The returned function reports whether the first complete list was processed.
func follow(i cache.SharedIndexInformer, notice func()) (cache.InformerSynced, error) {
	r, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notice() }, UpdateFunc: func(any, any) { notice() }, DeleteFunc: func(any) { notice() },
	})
	if err != nil {
		return nil, fmt.Errorf("watching the mesh: %w", err)
	}
	return r.HasSynced, nil
}

func (w *Watch) noteEvent() {
	w.mu.Lock()
	w.lastEvent = w.options.Now()
	w.mu.Unlock()
	w.notice()
}

func (w *Watch) notice() {
	select {
	case w.changed <- struct{}{}:
	default: // a notification is already pending
	}
}

// Start follows Nodes and EndpointSlices until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { w.nodes.RunWithContext(ctx) })
	running.Go(func() { w.slices.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), w.nodesRead, w.slicesRead) {
		return nil
	}
	w.rebuild()
	w.synced.Store(true)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
		}
		if !pause(ctx, settle) {
			return nil
		}
		w.rebuild()
	}
}

// Without the API server no new heartbeats arrive. If rebuild used the present time instead of that
// of the last Node event, all nodes would then count as gone.
func (w *Watch) rebuild() {
	w.mu.Lock()
	lastEvent := w.lastEvent
	w.mu.Unlock()
	var nodes []election.Node
	var self *election.Node
	for _, o := range w.nodes.GetStore().List() {
		if n, ok := o.(*corev1.Node); ok {
			k := election.Read(n, w.options.TopologyLabel)
			nodes = append(nodes, k)
			if n.Name == w.options.Node {
				self = &k
			}
		}
	}
	t := NewTopology(w.options.Node, nodes, w.agents(), lastEvent)
	w.topology.Store(&t)
	w.say(w.warning(t, self, lastEvent))
}

// Warnings are compared by their causes: the text may contain a number of seconds that changes each
// time.
type warning struct {
	cause cause
	text  string
}

type cause int

const (
	takesPart cause = iota
	nodeless
	uncounted
	unplaced
)

func (w *Watch) warning(t Topology, self *election.Node, now time.Time) warning {
	switch {
	case self == nil:
		return warning{nodeless, w.noSuchNode()}
	case self.NotReady(now) != "":
		return warning{uncounted, "Kilo does not count this node: " + self.NotReady(now)}
	case slices.Contains(t.Unplaced, self.Name):
		return warning{unplaced, fmt.Sprintf("this node has no location: it has neither the annotation %s nor the label %s", election.LocationKey, w.options.TopologyLabel)}
	}
	return warning{}
}

func (w *Watch) noSuchNode() string {
	return fmt.Sprintf("there is no Node %q: set --node-name to the pod's spec.nodeName", w.options.Node)
}

func (w *Watch) say(r warning) {
	was := cause(w.warned.Swap(int32(r.cause)))
	if r.cause == was {
		return
	}
	if r.cause == takesPart {
		w.options.Log.Info("this node takes part in the mesh again", "node", w.options.Node)
		return
	}
	w.options.Log.Info("no probes are made from this node", "node", w.options.Node, "why", r.text)
}

func (w *Watch) agents() Agents {
	found := map[string]map[bool]netip.AddrPort{} // by node, then by whether the address is IPv4
	for _, o := range w.slices.GetStore().List() {
		slice, ok := o.(*discoveryv1.EndpointSlice)
		if !ok || slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		port := w.port(slice)
		for _, e := range slice.Endpoints {
			if to, ok := agentOf(e, port); ok {
				of := found[*e.NodeName]
				if of == nil {
					of = map[bool]netip.AddrPort{}
					found[*e.NodeName] = of
				}
				// A node may have two agents during a rollout. The smaller address is used, so that
				// the result does not depend on the order of the informer's store.
				if was, twice := of[to.Addr().Is4()]; !twice || to.Compare(was) < 0 {
					of[to.Addr().Is4()] = to
				}
			}
		}
	}
	out := Agents{}
	for node, of := range found {
		out[node] = slices.SortedFunc(maps.Values(of), netip.AddrPort.Compare)
	}
	return out
}

// agentOf returns the address of an endpoint, even if it is not ready: a node that is not Ready has
// no ready pods, but may still forward traffic.
func agentOf(e discoveryv1.Endpoint, port uint16) (netip.AddrPort, bool) {
	if e.NodeName == nil || len(e.Addresses) == 0 || (e.Conditions.Terminating != nil && *e.Conditions.Terminating) {
		return netip.AddrPort{}, false
	}
	addr, err := netip.ParseAddr(e.Addresses[0])
	return netip.AddrPortFrom(addr.Unmap(), port), err == nil
}

func (w *Watch) port(s *discoveryv1.EndpointSlice) uint16 {
	for _, p := range s.Ports {
		if p.Name != nil && strings.HasPrefix(*p.Name, "probe") && p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			return uint16(*p.Port)
		}
	}
	return w.options.Port
}

// Topology returns the latest topology.
func (w *Watch) Topology() Topology { return *w.topology.Load() }

// Age returns the time since the last Node event, or since 1970 if there was none.
func (w *Watch) Age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastEvent.IsZero() {
		return w.options.Now().Sub(time.Unix(0, 0))
	}
	return w.options.Now().Sub(w.lastEvent)
}

// Ready returns nil when Nodes and EndpointSlices were read and the agent's own Node exists.
func (w *Watch) Ready() error {
	switch {
	case w.synced.Load() && cause(w.warned.Load()) == nodeless:
		return errors.New(w.noSuchNode())
	case w.synced.Load():
		return nil
	}
	var missing []string
	if !w.nodesRead() {
		missing = append(missing, "Nodes")
	}
	if !w.slicesRead() {
		missing = append(missing, "EndpointSlices of the Service "+w.options.Namespace+"/"+w.options.Service)
	}
	return fmt.Errorf("not read yet: %s", strings.Join(missing, ", "))
}
