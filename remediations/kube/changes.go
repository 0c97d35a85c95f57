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

// Changes has the names of the Nodes that changed in the cache since the engine last asked. It
// includes heartbeats, because a write names the version of its decision. It is safe for concurrent
// use.
type Changes struct {
	mu    sync.Mutex
	names map[string]bool
	// all: too many names for the list, so any Node may have changed.
	all bool
	// back is the last object that went back to an older version, at backAt.
	back   string
	backAt time.Time
}

// NewChanges returns Changes without any change.
func NewChanges() *Changes { return &Changes{names: map[string]bool{}} }

// changesKept bounds the names in a replica that does not lead, and so never takes them: more Nodes
// than any cluster has.
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

// compare notes that the cache goes back to an older version of a Node. A normal watch never does,
// so the API server's store went back.
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

// WentBack implements engine.Rewinding.
func (f Fleet) WentBack() (what string, at time.Time) {
	if f.Changes == nil {
		return "", time.Time{}
	}
	f.Changes.mu.Lock()
	defer f.Changes.mu.Unlock()
	return f.Changes.back, f.Changes.backAt
}

// take returns the names, and forgets them; false: any Node may have changed.
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

// Changed implements engine.Changing. It takes the names first, so that a change during the call is
// returned the next time.
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
