package fleet

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// shared has the Nodes by a value that should be unique, for example the boot ID. It is safe for
// concurrent use, because a provider's call reads it outside the engine's loop.
type shared struct {
	mu    sync.RWMutex
	nodes map[string][]holder
}

// holder is a Node with that value. The one that got it first comes first.
type holder struct {
	name string
	// changed means that the Node already existed before it got this value. former is its earlier
	// one, or empty.
	changed bool
	former  string
}

// follows reports whether h changed to a value that first already had. Both Nodes may have changed
// together from one earlier value: they are containers of one host, and the result is false.
func (h holder) follows(first holder) bool {
	together := h.former != "" && h.former == first.former
	return h.changed && !together
}

// move takes an empty text for no value. known means that the Node existed before.
func (x *shared) move(name, before, after string, known bool) {
	if before == after {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if before != "" {
		x.nodes[before] = slices.DeleteFunc(x.nodes[before], func(h holder) bool { return h.name == name })
		if len(x.nodes[before]) == 0 {
			delete(x.nodes, before)
		}
	}
	if after != "" {
		if x.nodes == nil {
			x.nodes = map[string][]holder{}
		}
		x.nodes[after] = append(x.nodes[after], holder{name, known, before})
	}
}

// other returns the first other Node, by name, or an empty text. If ranked is true, Nodes that got
// the value later do not count.
func (x *shared) other(name, value string, ranked bool) (other string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	holders := x.nodes[value]
	own := slices.IndexFunc(holders, func(h holder) bool { return h.name == name })
	for at, h := range holders {
		if h.name == name || ranked && own >= 0 && own < at && h.follows(holders[own]) {
			continue
		}
		if other == "" || h.name < other {
			other = h.name
		}
	}
	return other
}

// identify takes nil for now if the Node is gone.
func (r *Roster) identify(name string, was *Member, now *corev1.Node) {
	known := was.Node != nil
	machineBefore, bootBefore := identity(was.Node)
	machine, boot := identity(now)
	r.machines.move(name, machineBefore, machine, known)
	r.boots.move(name, bootBefore, boot, known)
}

func identity(n *corev1.Node) (machine, boot string) {
	if n == nil {
		return "", ""
	}
	return n.Spec.ProviderID, n.Status.NodeInfo.BootID
}

// Twin returns the first other Node with the same spec.providerID, by name, or an empty text. For
// example, a machine may have registered again under another name.
func (r *Roster) Twin(n *corev1.Node) (twin string) {
	return r.machines.other(n.Name, n.Spec.ProviderID, false)
}

// Twin returns the first other Node with the same spec.providerID, or an empty text.
func (f *Fleet) Twin(n *corev1.Node) string { return f.roster.Twin(n) }

// SameBoot returns the first other Node with the same boot ID, by name, or an empty text. Nodes
// that are containers have the boot ID of their host.
//
// The Node that had the boot ID first ignores Nodes that got it later. Otherwise a kubelet could
// hold the repair of another Node, if it wrote that Node's boot ID into its own status.
func (f *Fleet) SameBoot(n *corev1.Node) string {
	return f.roster.boots.other(n.Name, n.Status.NodeInfo.BootID, true)
}
