package fleet

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// shared shows which Nodes have the same value of a property that should be unique, for example the
// boot ID. Its keys are the values. It is safe for concurrent use, because a provider's call reads
// it outside the engine's loop.
type shared struct {
	mu    sync.RWMutex
	nodes map[string][]holder
}

// holder is a Node that has a certain value. The holders of one value are sorted: the Node that got
// the value first comes first.
type holder struct {
	name string
	// changed means that the Node already existed before it got this value. former is its earlier
	// value, or empty.
	changed bool
	former  string
}

// follows reports whether h existed and then changed to the value that first already had. It
// returns false if both Nodes changed to this value from the same earlier value: such Nodes are
// containers of one host.
func (h holder) follows(first holder) bool {
	together := h.former != "" && h.former == first.former
	return h.changed && !together
}

// move changes the stored value of the Node from before to after. An empty text means that the Node
// has no value. known means that the Node existed before this change.
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

// other returns the first other Node with that value, in the order of names, or an empty text. If
// ranked is true, Nodes that got the value after this Node do not count.
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

// identify stores the provider ID and boot ID of the present Node in place of those of the earlier
// Node. now is nil if the Node is gone.
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

// Twin returns the first other Node with the same spec.providerID, in the order of names, or an
// empty text. Two such Nodes exist, for example, after a machine has registered again under another
// name.
func (r *Roster) Twin(n *corev1.Node) (twin string) {
	return r.machines.other(n.Name, n.Spec.ProviderID, false)
}

// Twin returns the first other Node with the same spec.providerID, or an empty text.
func (f *Fleet) Twin(n *corev1.Node) string { return f.roster.Twin(n) }

// SameBoot returns the first other Node with the same boot ID, in the order of names, or an empty
// text. Nodes that are containers have the boot ID of their host.
//
// The Node that had the boot ID first ignores Nodes that got it later. Otherwise a kubelet could
// hold the repair of another Node, if it wrote that Node's boot ID into its own status.
func (f *Fleet) SameBoot(n *corev1.Node) string {
	return f.roster.boots.other(n.Name, n.Status.NodeInfo.BootID, true)
}
