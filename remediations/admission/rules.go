package admission

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// byNodeIdentity: a kubelet has no business with Drydock's domain. It could otherwise ask for its own repair, forge one,
// or hide one, since nothing else keeps it from its Node's annotations.
func byNodeIdentity(ch *Change, _ *repair) *violation {
	if !ch.ofNode() {
		return nil
	}
	written, removed := ch.keys(remediations.Relevant)
	if len(written)+len(removed) == 0 {
		return nil
	}
	key := append(written, removed...)[0]
	return &violation{reason: ReasonNodeIdentity, what: "changing " + key, message: fmt.Sprintf(
		"%s is changed by %s: node identities must not change drydock.dev keys; check the kubelet and every program that uses its credentials", key, text.Line(ch.User, 120))}
}

// ownKeyWritten: what only Drydock may write is Drydock's word about the node, and repairs rest on it.
func ownKeyWritten(ch *Change, _ *repair) *violation {
	if ch.ofNode() {
		return nil
	}
	written, _ := ch.keys(remediations.Owned)
	if len(written) == 0 {
		return nil
	}
	return &violation{reason: ReasonOwnKey, what: "writing " + written[0], message: fmt.Sprintf(
		"only Drydock may write %s (user: %s); people may set %s", written[0], text.Line(ch.User, 120), peoplesKeys())}
}

// ownKeyRemoved: with the record a repair in flight would lose its count, its proof and what it must undo. This binds users
// whom other rules exempt, and users with the verb reset (rightMissing), who can end the repair in other ways.
func ownKeyRemoved(ch *Change, busy *repair) *violation {
	if ch.New == nil || ch.ofNode() || !busy.inFlight() {
		return nil
	}
	_, removed := ch.keys(remediations.Owned)
	if len(removed) == 0 {
		return nil
	}
	return busy.collision(ReasonOwnKeyRemoved, byBreakGlass, "removing "+removed[0])
}

// requestPending: two requests on one node would be two people's, and only one can be served.
func requestPending(ch *Change, busy *repair) *violation {
	asked, ok := ch.asks()
	if !ok || ch.Old == nil || ch.ofNode() {
		return nil
	}
	if old, pending := ch.Old.Annotations[remediations.RequestKey]; pending {
		return &violation{reason: ReasonRequestPending, override: byBreakGlass, what: "asking for " + text.Line(asked, 80), message: fmt.Sprintf(
			"%s=%q is on node %s and not yet taken; to withdraw it: kubectl annotate node %s %s-", remediations.RequestKey, text.Line(old, 80), ch.Old.Name, ch.Old.Name, remediations.RequestKey)}
	}
	r := busy.recorded
	if r == nil || r.Cause.Request == "" || r.Phase == remediations.PhaseExhausted {
		return nil
	}
	return &violation{reason: ReasonRequestPending, override: byBreakGlass, what: "asking for " + text.Line(asked, 80), message: fmt.Sprintf(
		"repair %s of node %s (%s) is under way, %s since %s, by an earlier request; wait for its end, or end it: %s",
		r.ID, ch.Old.Name, r.Cause.Request, r.Phase, stamp(r.Since), howToCancel(ch.Old.Name, r.ID))}
}

// cordonFlipped: an uncordon lets pods onto a node that is about to go, a cordon makes the repair a stranger's.
func cordonFlipped(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New == nil || ch.Old.Spec.Unschedulable == ch.New.Spec.Unschedulable ||
		ch.New.Spec.Unschedulable && ch.works(busy) || ch.installs(busy) {
		return nil
	}
	what := "uncordoning it"
	if ch.New.Spec.Unschedulable {
		what = "cordoning it"
	}
	return busy.collision(ReasonCordon, byBreakGlassOrExempt, what)
}

// taintRemoved: a taint on the record is Drydock's, and Drydock's to take away.
func taintRemoved(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New == nil || busy.record == nil {
		return nil
	}
	for _, t := range ch.Old.Spec.Taints {
		ours := slices.ContainsFunc(busy.record.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoTaint && u.Key == t.Key })
		if ours && !tainted(ch.New, t) {
			return busy.collision(ReasonTaintRemoved, byBreakGlassOrExempt, "taking away its taint "+taintText(t))
		}
	}
	return nil
}

// noExecuteAdded: it evicts at once what the repair may be about to move in order.
func noExecuteAdded(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New == nil {
		return nil
	}
	for _, t := range ch.New.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute && !tainted(ch.Old, t) {
			return busy.collision(ReasonNoExecute, byBreakGlassOrExempt, "tainting it with "+taintText(t))
		}
	}
	return nil
}

// meshLeaderChanged: a leader chosen during a repair moves the mesh onto, or off, a node that is about to go; one chosen
// while the location's leader is being moved undoes that, or makes two of it.
func meshLeaderChanged(ch *Change, busy *repair) *violation {
	if ch.ofNode() || !ch.changesMeshLeader() {
		return nil
	}
	switch {
	case busy.inFlight():
		return busy.collision(ReasonMeshLeader, byBreakGlassOrExempt, "changing "+MeshLeaderKey)
	case busy.mesh != nil:
		return busy.mesh.collision(ReasonMeshLeader, byBreakGlassOrExempt, "changing "+MeshLeaderKey+" on node "+ch.Old.Name+" of the same location")
	}
	return nil
}

// changesMeshLeader: the change gives an existing node the key by which leaders are chosen, takes it away, or alters it.
func (ch *Change) changesMeshLeader() bool {
	if ch.Old == nil || ch.New == nil {
		return false
	}
	before, was := ch.Old.Annotations[MeshLeaderKey]
	after, is := ch.New.Annotations[MeshLeaderKey]
	return was != is || before != after
}

// deleted: with the Node its record would go.
func deleted(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New != nil || ch.works(busy) {
		return nil
	}
	return busy.collision(ReasonDeletion, byBreakGlassOrExempt, "deleting it")
}

// ownersChanged: the garbage collector, which is exempt, deletes a Node whose owners do not exist. A new owner that does not
// exist and the removal of one that does have the same effect. A Node without owners is safe.
func ownersChanged(ch *Change, busy *repair) *violation {
	if ch.New == nil || !busy.inFlight() || ch.works(busy) || len(ch.New.OwnerReferences) == 0 || reflect.DeepEqual(ch.Old.OwnerReferences, ch.New.OwnerReferences) {
		return nil
	}
	return busy.collision(ReasonOwnerReferences, byBreakGlassOrExempt, "changing its ownerReferences")
}

func requestInFlight(ch *Change, busy *repair) *violation {
	asked, ok := ch.asks()
	if !ok || !ch.bound(busy) {
		return nil
	}
	return busy.collision(ReasonRequestInFlight, byBreakGlassOrExempt, "asking for "+text.Line(asked, 80))
}

// bound: the change is to a node with a repair in flight, by somebody who must not collide with it. Nodes' own
// identities are held by the first rule alone: whatever else a kubelet does to its Node must never depend on Drydock.
func (ch *Change) bound(busy *repair) bool { return busy.inFlight() && !ch.ofNode() }

// works: the change is by whoever carries out the step that the repair has issued. To cordon the node, to evict its pods and to
// delete it is then the step, and no collision with it.
func (ch *Change) works(busy *repair) bool { return slices.Contains(busy.workers, ch.User) }

// asks says what the change newly asks for by RequestKey.
func (ch *Change) asks() (request string, asks bool) {
	if ch.New == nil {
		return "", false
	}
	v, ok := ch.New.Annotations[remediations.RequestKey]
	if !ok {
		return "", false
	}
	if ch.Old == nil {
		return v, true
	}
	before, was := ch.Old.Annotations[remediations.RequestKey]
	return v, !was || before != v
}

// keys are the annotations and labels that the change adds or alters, and those that it removes, each sorted. A Node
// that is deleted takes its keys along, which is another matter.
func (ch *Change) keys(of func(string) bool) (written, removed []string) {
	if ch.New == nil {
		return nil, nil
	}
	old := &corev1.Node{}
	if ch.Old != nil {
		old = ch.Old
	}
	for _, m := range []struct{ before, after map[string]string }{
		{old.Annotations, ch.New.Annotations}, {old.Labels, ch.New.Labels},
	} {
		for _, k := range slices.Sorted(maps.Keys(m.after)) {
			if v, ok := m.before[k]; of(k) && (!ok || v != m.after[k]) {
				written = append(written, k)
			}
		}
		for _, k := range slices.Sorted(maps.Keys(m.before)) {
			if _, ok := m.after[k]; of(k) && !ok {
				removed = append(removed, k)
			}
		}
	}
	return written, removed
}

// tainted says whether the node has that taint, whatever its value.
func tainted(n *corev1.Node, t corev1.Taint) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
}

func taintText(t corev1.Taint) string { return fmt.Sprintf("%s:%s", t.Key, t.Effect) }
