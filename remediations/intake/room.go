package intake

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
)

// How long Room counts an alert that has left the queue and is not in the cache yet, far longer
// than the delay of the cache.
const roomFor = 30 * time.Second

// Room counts alerts that the cache of Nodes does not show yet: this process has written them, or
// is about to. Without it, one post could put more alerts on a Node than the limit allows, because
// each alert is checked against the same old state. It is safe for concurrent use.
type Room struct {
	mu    sync.Mutex
	nodes map[nodeKey]map[string]taken
	// When take last removed expired alerts of all nodes.
	swept time.Time
}

// An alert that Room counts: its encoded value, and since when.
type taken struct {
	value string
	at    time.Time
}

// NewRoom makes an empty Room.
func NewRoom() *Room { return &Room{nodes: map[nodeKey]map[string]taken{}} }

// take returns the keys of stored alerts that must be removed for one more alert on the Node. ok is
// false if it does not fit even then. Otherwise Room counts it until the cache shows it, or until
// roomFor has passed, even if the write fails. An alert that is still queued, according to waiting
// (Writer.Waiting), counts for longer.
func (r *Room) take(n *corev1.Node, a remediations.Alert, now time.Time, waiting func(*corev1.Node, string) (*string, bool)) (drop []string, ok bool) {
	if r == nil {
		return remediations.Admit(n.Annotations, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.swept) > roomFor { // not for each alert: in a storm of alerts, r.nodes has all nodes
		r.swept = now
		maps.DeleteFunc(r.nodes, func(of nodeKey, all map[string]taken) bool {
			forget(of, all, now, waiting)
			return len(all) == 0
		})
	}
	of := nodeKey{n.Name, n.UID}
	annotations, mine := n.Annotations, r.nodes[of]
	forget(of, mine, now, waiting)
	maps.DeleteFunc(mine, func(key string, _ taken) bool {
		_, shown := n.Annotations[key]
		return shown
	})
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
		r.nodes[of] = mine
	}
	mine[a.Key()] = taken{a.Encode(), now}
	return drop, true
}

// An alert that is still queued stays, and is counted for roomFor once more.
func forget(of nodeKey, all map[string]taken, now time.Time, waiting func(*corev1.Node, string) (*string, bool)) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: of.name, UID: of.uid}}
	maps.DeleteFunc(all, func(key string, t taken) bool {
		if now.Sub(t.at) <= roomFor {
			return false
		}
		if waiting == nil {
			return true
		}
		_, waits := waiting(n, key)
		if waits {
			all[key] = taken{t.value, now}
		}
		return !waits
	})
}
