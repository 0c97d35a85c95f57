package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/remediations/engine"
)

// Changes collects the names of the Nodes that changed in the cache since the engine last took
// them. A heartbeat counts as a change, because a write must name the latest version of the Node.
// Changes is safe for concurrent use.
type Changes struct {
	mu    sync.Mutex
	names map[string]bool
	// The list would have too many names, so any Node may have changed.
	all bool
	// The last Node whose resourceVersion in the cache became lower, and when the cache received
	// that version.
	back   string
	backAt time.Time
}

// NewChanges returns an empty Changes.
func NewChanges() *Changes { return &Changes{names: map[string]bool{}} }

// changesKept is more than the Nodes of any cluster. In a replica that does not lead, the engine
// never takes the names.
const changesKept = 200_000

func (c *Changes) add(o any) {
	if c == nil {
		return
	}
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || len(c.names) >= changesKept {
		c.all = true
		clear(c.names)
	}
	if !c.all {
		c.names[key] = true
	}
}

// In a watch, versions only become higher. A lower version means that the API server's store has
// returned to an older state, for example from a backup.
func (c *Changes) compare(before, after *corev1.Node, now time.Time) {
	if c == nil || before.UID != after.UID {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(after.ResourceVersion, before.ResourceVersion); err != nil || order >= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.back, c.backAt = fmt.Sprintf("Node %s has resourceVersion %s, and had %s before", after.Name, after.ResourceVersion, before.ResourceVersion), now
}

var _ engine.Rewinding = Fleet{}

// WentBack implements engine.Rewinding. Both results are zero if no Node's resourceVersion became
// lower.
func (f Fleet) WentBack() (what string, at time.Time) {
	if f.Changes == nil {
		return "", time.Time{}
	}
	f.Changes.mu.Lock()
	defer f.Changes.mu.Unlock()
	return f.Changes.back, f.Changes.backAt
}

// take returns false if the names are incomplete, so that any Node may have changed.
func (c *Changes) take() (map[string]bool, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	names, some := c.names, !c.all
	c.names, c.all = map[string]bool{}, false
	return names, some
}

var _ engine.Changing = Fleet{}

// Changed implements engine.Changing. It takes the names before it reads the Nodes from the cache.
// A Node that changes between the two is named again by the next call.
func (f Fleet) Changed(context.Context) (nodes []*corev1.Node, gone []string, ok bool) {
	names, some := f.Changes.take()
	if !some {
		return nil, nil, false
	}
	for name := range names {
		if n := f.Cached(name); n != nil {
			nodes = append(nodes, n)
		} else {
			gone = append(gone, name)
		}
	}
	return nodes, gone, true
}
