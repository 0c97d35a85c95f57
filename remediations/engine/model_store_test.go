package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// snapshot is what the API server's store had at a time.
type snapshot struct {
	nodes        map[string]*corev1.Node
	ledger       map[string]string
	rv, ledgerRV int
}

func (w *world) snapshot() snapshot {
	return snapshot{maps.Clone(w.nodes), maps.Clone(w.ledger), w.rv, w.ledgerRV}
}

// restore has the store go back to the snapshot, as etcd does: with its versions. The machines stay as they are, and their kubelets
// report them.
func (w *world) restore(to snapshot) {
	w.rv, w.ledger, w.ledgerRV = to.rv, to.ledger, to.ledgerRV
	for name, n := range to.nodes {
		if w.nodes[name] == nil {
			continue
		}
		w.nodes[name] = n
		w.events = append(w.events, nodeEvent{at: time.Now(), name: name, node: n})
		w.report(w.machines[name])
	}
	w.notice()
}

// putBack writes what the Node's annotations and labels were over those that it has, as somebody does who applies an old file.
func (w *world) putBack(name string, to snapshot) {
	w.edit(name, func(n *corev1.Node) {
		n.Annotations, n.Labels = maps.Clone(to.nodes[name].Annotations), maps.Clone(to.nodes[name].Labels)
	})
}

// putBackOwned writes Drydock's own keys of the Node as they were, and takes away those that it did not have: all but what people wrote.
func (w *world) putBackOwned(name string, to snapshot) {
	was := w.nodes[name].Annotations[remediations.NodeRepairKey]
	defer func() { w.stripped(name, was) }()
	w.edit(name, func(n *corev1.Node) {
		owned := func(key, _ string) bool { return remediations.Owned(key) }
		maps.DeleteFunc(n.Annotations, owned)
		for key, text := range to.nodes[name].Annotations {
			if remediations.Owned(key) {
				n.Annotations[key] = text
			}
		}
	})
}

// dropOwned takes one of Drydock's own keys from the Node, as somebody does who cleans it by hand.
func (w *world) dropOwned(name string, which int) {
	n := w.nodes[name]
	if n == nil {
		return
	}
	var owned []string
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		if remediations.Owned(key) {
			owned = append(owned, key)
		}
	}
	if len(owned) > 0 {
		was := n.Annotations[remediations.NodeRepairKey]
		w.edit(name, func(n *corev1.Node) { delete(n.Annotations, owned[which%len(owned)]) })
		w.stripped(name, was)
	}
}

// stripped notes that somebody took the node's record away, or put another one there: who does that takes over the cordon, too.
func (w *world) stripped(name, was string) {
	if was != "" && w.nodes[name].Annotations[remediations.NodeRepairKey] != was {
		w.machines[name].stripped = true
	}
}

// deny has another admission policy refuse Drydock's keys on all Nodes.
func (w *world) deny() {
	w.writes = func() Writes { return Writes{Denied: "ValidatingAdmissionPolicy 'other' denied request"} }
}

// unknownKind is a kind of target that only a newer version of Drydock has.
const unknownKind remediations.Kind = "rack"

// leaveUnknown has a newer version leave a slot of an unknown kind, and a record of it on the Node.
func (w *world) leaveUnknown(name string) {
	n, l := w.nodes[name], w.book()
	if n == nil || l == nil || w.ledger == nil || slices.ContainsFunc(l.Slots, isUnknown) {
		return
	}
	l.Slots = append(l.Slots, ledger.Slot{Kind: unknownKind, Node: name, UID: string(n.UID), Policy: "node-not-ready", Repair: "runknown", Attempt: "runknown-0-1", Since: time.Now()})
	w.ledgerRV++
	w.ledger = l.Encode()
	w.edit(name, edit(remediations.RepairPrefix+string(unknownKind), `{"v":1}`))
}

func isUnknown(s ledger.Slot) bool { return s.Kind == unknownKind }

// forgetUnknown is what a person does who goes back to the older version for good.
func (w *world) forgetUnknown() {
	l := w.book()
	if l == nil || !slices.ContainsFunc(l.Slots, isUnknown) {
		return
	}
	l.Slots = slices.DeleteFunc(l.Slots, isUnknown)
	w.ledgerRV++
	w.ledger = l.Encode()
}
