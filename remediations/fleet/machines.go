package fleet

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// shared are the names of the Nodes that have each value of something that should be one Node's alone. It may be asked from outside
// the loop, right before a call.
type shared struct {
	mu    sync.RWMutex
	nodes map[string][]string
}

// move has the Node have the value after, instead of before; empty: none.
func (x *shared) move(name, before, after string) {
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

// other is the name of another Node with that value, the first by name; empty: there is none.
func (x *shared) other(name, value string) (other string) {
	if value == "" {
		return ""
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, n := range x.nodes[value] {
		if n != name && (other == "" || n < other) {
			other = n
		}
	}
	return other
}

// identify takes the member's Node in as it is by now; nil: it is gone.
func (r *Roster) identify(name string, was *Member, now *corev1.Node) {
	machineBefore, bootBefore := identity(was.Node)
	machine, boot := identity(now)
	r.machines.move(name, machineBefore, machine)
	r.boots.move(name, bootBefore, boot)
}

func identity(n *corev1.Node) (machine, boot string) {
	if n == nil {
		return "", ""
	}
	return n.Spec.ProviderID, n.Status.NodeInfo.BootID
}

// Twin is the name of another Node with the same spec.providerID, the first by name; empty: there is none. Two Nodes of one machine are
// what is left when a machine registers under another name.
func (r *Roster) Twin(n *corev1.Node) (twin string) {
	return r.machines.other(n.Name, n.Spec.ProviderID)
}

// Twin is the Roster's.
func (f *Fleet) Twin(n *corev1.Node) string { return f.roster.Twin(n) }

// SameBoot is the name of another Node with the same boot ID, the first by name; empty: there is none. Nodes that are containers have
// the boot ID of their host.
func (f *Fleet) SameBoot(n *corev1.Node) string {
	return f.roster.boots.other(n.Name, n.Status.NodeInfo.BootID)
}
