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

// A kubelet may write no key of Drydock's domain. It could otherwise request its own repair, forge
// a record or hide one, because nothing else prevents writes of a kubelet to its Node's
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

// Repairs depend on the keys that only Drydock may write.
func ownKeyWritten(ch *Change, _ *repair) *violation {
	written, _ := ch.keys(remediations.Owned)
	if len(written) == 0 {
		return nil
	}
	return &violation{reason: ReasonOwnKey, what: "writing " + written[0], message: fmt.Sprintf(
		"only Drydock may write %s (user: %s); people may set %s", written[0], text.Line(ch.User, 120), peoplesKeys())}
}

// ownKeyRemoved protects the record of a repair in flight: the attempts, the proof and the undo
// list. It binds users that are exempt from other rules, and users with the verb reset, because
// they can end the repair in other ways.
func ownKeyRemoved(ch *Change, busy *repair) *violation {
	if !busy.inFlight() {
		return nil
	}
	_, removed := ch.keys(remediations.Owned)
	if len(removed) == 0 {
		return nil
	}
	return busy.collision(ReasonOwnKeyRemoved, byBreakGlass, "removing "+removed[0])
}

// Two requests on one node may come from two people, and Drydock can carry out only one.
func requestPending(ch *Change, busy *repair) *violation {
	asked, ok := ch.asks()
	if !ok || ch.Old == nil {
		return nil
	}
	if old, pending := ch.Old.Annotations[remediations.RequestKey]; pending {
		return &violation{reason: ReasonRequestPending, override: byBreakGlass, what: "requesting " + text.Line(asked, 80), message: fmt.Sprintf(
			"node %s already has the pending request %s=%q; to withdraw that request: kubectl annotate node %s %s-", ch.Old.Name, remediations.RequestKey, text.Line(old, 80), ch.Old.Name, remediations.RequestKey)}
	}
	r := busy.recorded
	if r == nil || r.Cause.Request == "" || r.Phase == remediations.PhaseExhausted {
		return nil
	}
	return &violation{reason: ReasonRequestPending, override: byBreakGlass, what: "requesting " + text.Line(asked, 80), message: fmt.Sprintf(
		"repair %s of node %s already carries out an earlier request (%s, %s since %s); wait for its end, or cancel it: %s",
		r.ID, ch.Old.Name, r.Cause.Request, r.Phase, stamp(r.Since), howToCancel(ch.Old.Name, r.ID))}
}

// An uncordon would let pods onto a node that is about to restart or be replaced. After a cordon by
// another user, Drydock could not know whether it may uncordon the node.
func cordonFlipped(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New == nil || ch.Old.Spec.Unschedulable == ch.New.Spec.Unschedulable ||
		ch.New.Spec.Unschedulable && ch.works(busy) || ch.installs(busy) {
		return nil
	}
	what := "uncordoning the node"
	if ch.New.Spec.Unschedulable {
		what = "cordoning the node"
	}
	return busy.collision(ReasonCordon, byBreakGlassOrExempt, what)
}

// Drydock set the taints in the record's undo list, and only Drydock removes them.
func taintRemoved(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New == nil || busy.record == nil {
		return nil
	}
	for _, t := range ch.Old.Spec.Taints {
		ours := slices.ContainsFunc(busy.record.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoTaint && u.Key == t.Key })
		if ours && !tainted(ch.New, t) {
			return busy.collision(ReasonTaintRemoved, byBreakGlassOrExempt, "removing the node's taint "+taintText(t))
		}
	}
	return nil
}

// A NoExecute taint evicts pods at once, while the repair may be about to drain the node in an
// orderly way.
func noExecuteAdded(ch *Change, busy *repair) *violation {
	if !ch.bound(busy) || ch.New == nil {
		return nil
	}
	for _, t := range ch.New.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute && !tainted(ch.Old, t) {
			return busy.collision(ReasonNoExecute, byBreakGlassOrExempt, "tainting the node with "+taintText(t))
		}
	}
	return nil
}

// The change would move the mesh leadership to or from a node that is about to restart or be
// replaced. While Drydock moves the leadership, the change would undo the move or make two leaders.
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
	return busy.collision(ReasonDeletion, byBreakGlassOrExempt, "deleting the node")
}

// The garbage collector deletes a Node when none of its owners exists. It is an exempt user, so no
// other rule stops that deletion. Two changes can cause it: adding an owner that does not exist,
// and removing the only owner that exists. A Node without owners is safe.
func ownersChanged(ch *Change, busy *repair) *violation {
	if ch.New == nil || !busy.inFlight() || ch.works(busy) || len(ch.New.OwnerReferences) == 0 || reflect.DeepEqual(ch.Old.OwnerReferences, ch.New.OwnerReferences) {
		return nil
	}
	return busy.collision(ReasonOwnerReferences, byBreakGlassOrExempt, "changing the node's ownerReferences")
}

func requestInFlight(ch *Change, busy *repair) *violation {
	asked, ok := ch.asks()
	if !ok || !ch.bound(busy) {
		return nil
	}
	return busy.collision(ReasonRequestInFlight, byBreakGlassOrExempt, "requesting "+text.Line(asked, 80))
}

// bound reports whether the node has a repair in flight that restricts the user. It does not
// restrict the node's own identity: a kubelet's changes to its Node must not depend on Drydock.
// Only byNodeIdentity restricts kubelets.
func (ch *Change) bound(busy *repair) bool { return busy.inFlight() && !ch.ofNode() }

// works reports whether the user carries out the repair's current step. A cordon, an eviction or
// the deletion of the Node is then a part of the step.
func (ch *Change) works(busy *repair) bool { return slices.Contains(busy.workers, ch.User) }

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

// keys returns the sorted keys that the change writes, new or with another value, and those that it
// removes. Both are nil if the Node is deleted.
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

// tainted ignores the taint's value.
func tainted(n *corev1.Node, t corev1.Taint) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
}

func taintText(t corev1.Taint) string { return fmt.Sprintf("%s:%s", t.Key, t.Effect) }
