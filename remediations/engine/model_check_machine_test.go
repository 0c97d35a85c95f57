package engine

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// remake creates the Node again on that machine, with the old Node's annotations, labels, taints
// and cordon. A backup or a GitOps tool may do that.
func (w *world) remake(name, providerID string) {
	was, before := w.nodes[name], w.machines[name]
	if was == nil {
		return
	}
	since, held := w.paused[name]
	w.leave(name)
	w.join(name, providerID)
	if before.providerID == providerID {
		w.machines[name], before.registered = before, true
		w.report(before)
	}
	if held {
		w.paused[name] = since
	}
	m := w.machines[name]
	m.marked = before.marked            // the taints are the old Node's
	m.announcedBy = map[string]string{} // no managedFields show any more which manager set what
	if m.cordonedBy = ""; was.Spec.Unschedulable {
		m.cordonedBy = "a backup"
	}
	w.edit(name, func(n *corev1.Node) {
		maps.Copy(n.Annotations, was.Annotations)
		maps.Copy(n.Labels, was.Labels)
		n.Spec.Unschedulable, n.Spec.Taints = was.Spec.Unschedulable, was.Spec.Taints
	})
}

func repairOf(intent string) string {
	id, _, _ := strings.Cut(intent, "-")
	return id
}

// checkMachine: while a node's own record is written, it stays about the machine of its first step.
// The records of sidecars and locations name their pod or location instead, and continue on another
// machine.
func (w *world) checkMachine(cur *corev1.Node, c NodeChange) {
	for key, value := range c.Annotations {
		if key != remediations.NodeRepairKey || value == nil {
			continue
		}
		r, err := modelRegistry.DecodeRecord(*value)
		if err != nil || r.Intent == nil || isPlanted(r.ID) {
			continue // checkRecord covers a Node without a record; without a step no machine was changed; a planted record names no machine
		}
		switch of, known := w.of[r.ID]; {
		case !known:
			w.of[r.ID] = cur.Spec.ProviderID
		case of != cur.Spec.ProviderID && r.Intent.UID != string(cur.UID):
			w.fail("Machine: the repair %s of %s goes on on %s of %s", r.ID, of, cur.Name, cur.Spec.ProviderID)
		}
	}
}

// ofAnotherMachine reports whether the entry is the end of another machine's repair, and checks
// what the entry then contains. A repair that replaces its machine ends on the new machine.
func (w *world) ofAnotherMachine(cur *corev1.Node, e remediations.Entry) bool {
	of, known := w.of[e.ID]
	if !known || of == cur.Spec.ProviderID || w.orphan(e.ID) != nil {
		return false
	}
	if e.Outcome != remediations.OutcomeSuperseded || e.Last != nil || len(e.Left) > 0 {
		w.fail("Machine: the repair %s of %s ended as %s on %s of %s", e.ID, of, e.Outcome, cur.Name, cur.Spec.ProviderID)
	}
	return true
}
