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

// byNodeIdentity denies kubelets every key of Drydock's domain. A kubelet could otherwise request
// its own repair, forge a record or hide one, because nothing else keeps it from its Node's
// annotations.
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

// ownKeyWritten protects the keys that only Drydock may write, because repairs depend on them.
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

// ownKeyRemoved protects the record of a repair in flight, which has its count, its proof and its
// undo list. It also binds users that other rules exempt, and users with the verb reset
// (rightMissing), who can end the repair in other ways.
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

// requestPending denies a second request: two requests on one node come from two people, and
// Drydock can carry out only one.
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

// cordonFlipped denies cordons and uncordons. An uncordon lets pods onto a node that is about to
// go, and a cordon by another user would no longer be Drydock's to remove.
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

// taintRemoved protects taints on the record: Drydock set them, and only Drydock removes them.
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

// noExecuteAdded denies a taint that evicts at once the pods that the repair may be about to move
// in order.
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

// meshLeaderChanged denies a choice of leader during a repair, because it moves the mesh to or from
// a node that is about to go. During a move of the location's leader, such a choice would undo the
// move or make two leaders.
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

// changesMeshLeader reports whether the change adds, removes or alters the key that chooses
// leaders, on an existing node.
func (ch *Change) changesMeshLeader() bool {
	if ch.Old == nil || ch.New == nil {
		return false
	}
	before, was := ch.Old.Annotations[MeshLeaderKey]
	after, is := ch.New.Annotations[MeshLeaderKey]
	return was != is || before != after
}

// deleted denies the deletion of the Node, because its record would be lost.
func deleted(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New != nil || ch.works(busy) {
		return nil
	}
	return busy.collision(ReasonDeletion, byBreakGlassOrExempt, "deleting it")
}

// ownersChanged denies changes of a Node's owners. The garbage collector, which is exempt, deletes
// a Node whose owners do not exist. A new owner that does not exist has this effect, and so does
// removing an owner that exists. A Node without owners is safe.
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

// bound reports whether the change is to a node with a repair in flight, by a user who must not
// collide with it. Only the first rule holds nodes' own identities: all other changes of a kubelet
// to its Node must never depend on Drydock.
func (ch *Change) bound(busy *repair) bool { return busy.inFlight() && !ch.ofNode() }

// works reports whether the change comes from a user that carries out the step which the repair has
// issued. Cordoning the node, evicting its pods and deleting it are then the step itself, and not a
// collision.
func (ch *Change) works(busy *repair) bool { return slices.Contains(busy.workers, ch.User) }

// asks returns the request that the change adds under RequestKey.
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

// keys returns the annotations and labels that the change adds or alters, and those that it
// removes, both sorted. The keys of a deleted Node do not count.
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

// tainted reports whether the node has the taint, with any value.
func tainted(n *corev1.Node, t corev1.Taint) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
}

func taintText(t corev1.Taint) string { return fmt.Sprintf("%s:%s", t.Key, t.Effect) }
