package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// Kilo stands in for Kilo's agents on the nodes of a network: for each node it
// sets the routes that its agent would set, at once when a Node changes, and
// writes the annotations that its agent would write. The leader's annotation is
// nobody's but others'.
type Kilo struct {
	network *Network
	client  kubernetes.Interface
	lister  corev1listers.NodeLister
	every   time.Duration
	changed chan struct{}
	end     func()

	mu      sync.Mutex
	leads   map[string]string // by location, where the routes go now
	moves   []Lead            // what leads was, oldest first
	applied map[string]string // by node, what its routes are
	silent  map[string]bool   // by node, whose agents do not check in
	failed  error             // the last thing that went wrong
	news    chan struct{}     // closed, and another, at every change of the above
}

// StartKilo gives the lab's Nodes of the network a pod CIDR and what Kilo
// writes on them, takes away who leads, and returns when every pod reaches every
// other one. every is how often an agent checks in (Kilo's own: 30 s; zero: 3 s);
// with that it writes whether it has an address in the mesh, as Kilo's do. It
// ends with Stop or the network.
func (n *Network) StartKilo(ctx context.Context, l *lab.Lab, every time.Duration) (*Kilo, error) {
	if every == 0 {
		every = 3 * time.Second
	}
	k := &Kilo{
		network: n, client: l.Client(), every: every, changed: make(chan struct{}, 1),
		leads: map[string]string{}, applied: map[string]string{}, silent: map[string]bool{}, news: make(chan struct{}),
	}
	for _, node := range n.nodes {
		if err := k.join(ctx, node); err != nil {
			return nil, err
		}
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	k.end = func() { cancel(); wg.Wait() }
	n.atEnd(k.end)
	factory := informers.NewSharedInformerFactory(k.client, 0)
	nodes := factory.Core().V1().Nodes()
	k.lister = nodes.Lister()
	notice := func() {
		select {
		case k.changed <- struct{}{}:
		default: // it is about to look anyway
		}
	}
	if _, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notice() }, UpdateFunc: func(_, _ any) { notice() }, DeleteFunc: func(any) { notice() },
	}); err != nil {
		return nil, fmt.Errorf("watching the Nodes for Kilo: %w", err)
	}
	factory.StartWithContext(running)
	factory.WaitForCacheSyncWithContext(running)
	wg.Go(func() { k.follow(running) })
	for i, node := range n.nodes {
		// Agents check in one after the other, not all in one moment.
		wg.Go(func() { k.checkIns(running, node, k.every*time.Duration(i)/time.Duration(len(n.nodes))) })
	}
	return k, k.awaitAll(ctx)
}

// awaitAll returns when every location has a leader and every way between pods carries.
func (k *Kilo) awaitAll(ctx context.Context) error {
	locations := map[string]string{}
	for _, node := range k.network.nodes {
		locations[node.Location] = node.Name
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		k.mu.Lock()
		led, failed := len(k.leads), k.failed
		k.mu.Unlock()
		var mute []string
		if led == len(locations) {
			if mute = k.network.Mute(ctx); len(mute) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for every pod to reach every other: %w; %d locations have a leader, mute: %v", errors.Join(ctx.Err(), failed), led, mute)
		case <-tick.C:
		}
	}
}

// Stop ends the agents, which leave everything as it is.
func (k *Kilo) Stop() { k.end() }

// Leader is whom the routes of a location go through now.
func (k *Kilo) Leader(location string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leads[location]
}

// Lead is a node that a location's routes began to go through.
type Lead struct {
	At             time.Time
	Location, Node string
}

// Leads are all leaders since the start, the first ones included.
func (k *Kilo) Leads() []Lead {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.moves)
}

// AwaitLeader returns when all routes of the location go through the node, or
// with the context.
func (k *Kilo) AwaitLeader(ctx context.Context, location, node string) error {
	for {
		k.mu.Lock()
		now, news, failed := k.leads[location], k.news, k.failed
		k.mu.Unlock()
		if now == node {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to lead %s: %w; %s leads", node, location, errors.Join(ctx.Err(), failed), now)
		case <-news:
		}
	}
}

// Lead makes the node its location's leader as a person would, by the leader's
// annotation on it and on no other one.
func (k *Kilo) Lead(ctx context.Context, node string) error {
	leader := k.network.Node(node)
	order := append([]*Node{leader}, slices.DeleteFunc(slices.Clone(k.network.nodes), func(n *Node) bool { return n == leader })...)
	for _, n := range order {
		var value any
		if n == leader {
			value = "true"
		} else if n.Location != leader.Location {
			continue
		}
		if err := k.patch(ctx, n, map[string]any{"metadata": map[string]any{"annotations": map[string]any{election.LeaderKey: value}}}); err != nil {
			return err
		}
	}
	return k.AwaitLeader(ctx, leader.Location, node)
}
