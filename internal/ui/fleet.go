package ui

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"drydock.dev/drydock/internal/inspect"
)

// fleet gives every change a number. Each open page keeps the number of the last change that it
// shows, so fleet knows which changes the page lacks.
type fleet struct {
	mu     sync.Mutex
	number uint64
	nodes  map[string]*corev1.Node
	// listed reports that nodes has all Nodes. Before that, the first list is incomplete.
	listed bool
	tiles  map[string]tile
	ledger inspect.Ledger
	leader inspect.Leadership
	// changed has the number of each node's last change, also of deleted nodes. force is that of the
	// facts about the whole fleet.
	changed          map[string]uint64
	force            uint64
	connection       connection
	connectionNumber uint64
	// bell is closed at the next change. A new channel then replaces it.
	bell chan struct{}
}

func (f *fleet) known() ([]*corev1.Node, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.nodes)), f.listed
}

func newFleet() *fleet {
	return &fleet{nodes: map[string]*corev1.Node{}, tiles: map[string]tile{}, changed: map[string]uint64{}, bell: make(chan struct{})}
}

// ring wakes the stream of every open page. The caller holds the lock.
func (f *fleet) ring() uint64 {
	f.number++
	close(f.bell)
	f.bell = make(chan struct{})
	return f.number
}

func (f *fleet) put(n *corev1.Node, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(n, now)
}

func (f *fleet) putLocked(n *corev1.Node, now time.Time) {
	before, tile := f.nodes[n.Name], tileOf(n, &f.ledger, now)
	f.nodes[n.Name] = n
	if before != nil && f.tiles[n.Name] == tile && equality.Semantic.DeepEqual(before, n) {
		return
	}
	f.tiles[n.Name] = tile
	f.changed[n.Name] = f.ring()
}

func (f *fleet) drop(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropLocked(name)
}

func (f *fleet) dropLocked(name string) {
	if _, was := f.nodes[name]; was {
		delete(f.nodes, name)
		delete(f.tiles, name)
		f.changed[name] = f.ring()
	}
}

func (f *fleet) replace(nodes []*corev1.Node, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed = true
	there := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		there[n.Name] = true
		f.putLocked(n, now)
	}
	for name := range maps.Clone(f.nodes) {
		if !there[name] {
			f.dropLocked(name)
		}
	}
}

func (f *fleet) setLedger(l inspect.Ledger, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reflect.DeepEqual(f.ledger, l) {
		return
	}
	f.ledger = l
	f.force = f.ring()
	f.judgeLocked(now)
}

func (f *fleet) setLeader(l inspect.Leadership) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.Holder != f.leader.Holder || l.None != f.leader.None || l.Unseen != f.leader.Unseen {
		f.leader = l
		f.force = f.ring()
	}
}

// judge computes every tile again, because some states end by time alone, for example a pause.
func (f *fleet) judge(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judgeLocked(now)
}

func (f *fleet) judgeLocked(now time.Time) {
	for name, n := range f.nodes {
		if tile := tileOf(n, &f.ledger, now); tile != f.tiles[name] {
			f.tiles[name] = tile
			f.changed[name] = f.ring()
		}
	}
}

func (f *fleet) connect(c connection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c == f.connection {
		return
	}
	f.connection = c
	f.connectionNumber = f.ring()
}

type news struct {
	number     uint64
	tiles      []tile
	gone       []string
	connection *connection
	force      bool
}

func (n news) empty() bool {
	return len(n.tiles)+len(n.gone) == 0 && n.connection == nil && !n.force
}

// after returns what has changed after this number. The channel is closed at the next change.
func (f *fleet) after(number uint64) (news, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := news{number: f.number, force: f.force > number}
	for name, at := range f.changed {
		if at <= number {
			continue
		}
		if tile, there := f.tiles[name]; there {
			out.tiles = append(out.tiles, tile)
		} else {
			out.gone = append(out.gone, name)
		}
	}
	if f.connectionNumber > number {
		c := f.connection
		out.connection = &c
	}
	slices.SortFunc(out.tiles, byNode)
	slices.SortFunc(out.gone, natural)
	return out, f.bell
}

func byNode(a, b tile) int { return natural(a.Node, b.Node) }

func (f *fleet) now() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.number
}

func (f *fleet) connected() connection {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connection
}

// namespace is "" if the ledger was not read yet.
func (f *fleet) namespace() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ledger.Namespace
}
