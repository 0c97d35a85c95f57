package fleet

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// machines are the names of the Nodes that have each spec.providerID. It may be asked from outside the loop, right before a call.
type machines struct {
	mu    sync.RWMutex
	nodes map[string][]string
}

// move takes the member's Node in as it is by now; nil: it is gone.
func (x *machines) move(name string, was *Member, now *corev1.Node) {
	before, after := "", ""
	if was.Node != nil {
		before = was.Node.Spec.ProviderID
	}
	if now != nil {
		after = now.Spec.ProviderID
	}
	if before == after {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if before != "" {
		x.nodes[before] = slices.DeleteFunc(x.nodes[before], func(n string) bool { return n == name })
		if len(x.nodes[before]) == 0 {
			delete(x.nodes, before)
		}
	}
	if after != "" {
		if x.nodes == nil {
			x.nodes = map[string][]string{}
		}
		x.nodes[after] = append(x.nodes[after], name)
	}
}

// Twin is the name of another Node with the same spec.providerID, the first by name; empty: there is none. Two Nodes of one machine are
// what is left when a machine registers under another name.
func (r *Roster) Twin(n *corev1.Node) (twin string) {
	if n.Spec.ProviderID == "" {
		return ""
	}
	r.machines.mu.RLock()
	defer r.machines.mu.RUnlock()
	for _, name := range r.machines.nodes[n.Spec.ProviderID] {
		if name != n.Name && (twin == "" || name < twin) {
			twin = name
		}
	}
	return twin
}

// Twin is the Roster's.
func (f *Fleet) Twin(n *corev1.Node) string { return f.roster.Twin(n) }
