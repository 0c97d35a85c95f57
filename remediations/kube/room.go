package kube

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// roomFor is how long a write counts that the cache does not show: far longer than the cache is ever behind.
const roomFor = 30 * time.Second

// Room counts the alerts that this process has written on Nodes, or is about to, and that its cache does not show yet.
// Without it one post fills a Node beyond its limit: each of its alerts looks at the same Node as it was before. It is safe
// for concurrent use.
type Room struct {
	mu    sync.Mutex
	nodes map[string]map[string]taken
	// swept is when the nodes were last forgotten whose writes the cache must have by now.
	swept time.Time
}

// taken is the place of one alert.
type taken struct {
	value string
	at    time.Time
}

// NewRoom remembers nothing yet.
func NewRoom() *Room { return &Room{nodes: map[string]map[string]taken{}} }

// take says which keys must go for one more alert to fit on the Node, and whether it fits at all. If it does, it has its
// place from now on, whether its write succeeds or not, until the cache shows it or roomFor is over.
func (r *Room) take(n *corev1.Node, a remediations.Alert, now time.Time) (drop []string, ok bool) {
	if r == nil {
		return remediations.Admit(n.Annotations, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.swept) > roomFor { // not with each alert: in a storm all nodes are remembered
		r.swept = now
		maps.DeleteFunc(r.nodes, func(_ string, all map[string]taken) bool {
			maps.DeleteFunc(all, func(_ string, t taken) bool { return now.Sub(t.at) > roomFor })
			return len(all) == 0
		})
	}
	annotations, mine := n.Annotations, r.nodes[n.Name]
	for key, t := range mine {
		if _, shown := n.Annotations[key]; shown || now.Sub(t.at) > roomFor {
			delete(mine, key)
		}
	}
	if len(mine) > 0 {
		annotations = maps.Clone(n.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		for key, t := range mine {
			annotations[key] = t.value
		}
	}
	if drop, ok = remediations.Admit(annotations, a); !ok {
		return nil, false
	}
	if mine == nil {
		mine = map[string]taken{}
		r.nodes[n.Name] = mine
	}
	mine[a.Key()] = taken{a.Encode(), now}
	return drop, true
}
