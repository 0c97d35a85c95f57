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

// Kilo simulates Kilo's agents on the nodes of a network: their routes, which follow each change of
// a Node at once, and their annotations. It never writes the leader's annotation.
type Kilo struct {
	network *Network
	client  kubernetes.Interface
	lister  corev1listers.NodeLister
	every   time.Duration
	changed chan struct{}
	end     func()

	mu      sync.Mutex
	leads   map[string]string // the current leader of the routes, by location
	moves   []Lead            // all leaders so far, oldest first
	applied map[string]string // the current routes, by node
	silent  map[string]bool   // whether the agent stopped checking in, by node
	failed  error             // the last error
	news    chan struct{}     // closed and replaced at every change of the fields above
}

// StartKilo gives the Nodes of the network a pod CIDR and Kilo's annotations, removes earlier
// leaders, and returns when every pod reaches every other pod. every is how often an agent checks
// in: by default 3 s, with Kilo itself 30 s. It ends with Stop or with the network.
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
		default: // it will check anyway
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
		// The agents check in one after the other, and not all at the same moment.
		wg.Go(func() { k.checkIns(running, node, k.every*time.Duration(i)/time.Duration(len(n.nodes))) })
	}
	return k, k.awaitAll(ctx)
}

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

// Stop ends the agents. They leave routes and annotations as they are.
func (k *Kilo) Stop() { k.end() }

// Leader returns the node that the routes of a location use now.
func (k *Kilo) Leader(location string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leads[location]
}

// Lead is a change of leader: from this time on, a location's routes use this node.
type Lead struct {
	At             time.Time
	Location, Node string
}

// Leads returns all changes of leaders since the start, including the first leaders.
func (k *Kilo) Leads() []Lead {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.moves)
}

// AwaitLeader waits until all routes of the location use the node, or until ctx ends.
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

// Lead makes the node the leader of its location, as a person would: by the leader's annotation.
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
