package fleet

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// shared has, for each value of a property that should be unique, the Nodes that have the value. It
// is safe for concurrent use, because a provider's call reads it outside the engine's loop.
type shared struct {
	mu    sync.RWMutex
	nodes map[string][]holder
}

// holder is a Node that has a value. The holders of a value are sorted by when they got it.
type holder struct {
	name string
	// changed means that the Node existed before it got this value. former is its earlier value, or
	// empty.
	changed bool
	former  string
}

// follows reports whether h got the value later than first. Nodes whose value changed together,
// from a value that they shared, do not follow each other: they are containers of one host.
func (h holder) follows(first holder) bool {
	together := h.former != "" && h.former == first.former
	return h.changed && !together
}

// move changes the Node's value from before to after. An empty text means that the Node has no
// value. known means that the Node existed before.
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

// other returns the name of another Node with that value, or an empty text. Of several Nodes it
// returns the first by name. With ranked, a Node that got the value after this Node does not count.
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

// identify records the member's current Node. now is nil if the Node is gone.
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

// Twin returns the name of another Node with the same spec.providerID, or an empty text. Of several
// Nodes it returns the first by name. A machine that registers again under another name leaves two
// such Nodes.
func (r *Roster) Twin(n *corev1.Node) (twin string) {
	return r.machines.other(n.Name, n.Spec.ProviderID, false)
}

// Twin calls the Roster's Twin.
func (f *Fleet) Twin(n *corev1.Node) string { return f.roster.Twin(n) }

// SameBoot returns the name of another Node with the same boot ID, or an empty text. Of several
// Nodes it returns the first by name. Nodes that are containers have the boot ID of their host. A
// Node that got the boot ID later does not count for the Node that had it first: a kubelet that
// writes another Node's boot ID into its own status must not hold that Node.
func (f *Fleet) SameBoot(n *corev1.Node) string {
	return f.roster.boots.other(n.Name, n.Status.NodeInfo.BootID, true)
}
