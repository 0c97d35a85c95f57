package requests

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

func inFlight(n *corev1.Node) { Put(n, Record(remediations.PhaseVerifying)) }
func acting(n *corev1.Node)   { Put(n, Record(remediations.PhaseActing)) }
func pending(n *corev1.Node)  { Put(n, Record(remediations.PhasePending)) }

func exhausted(n *corev1.Node) { Put(n, Record(remediations.PhaseExhausted)) }

func observing(n *corev1.Node) {
	r := Record(remediations.PhasePending)
	r.Hold = &remediations.Hold{Reason: remediations.ReasonObserving, Message: "would reboot n1 now", Since: Now}
	Put(n, r)
}

func leader(p remediations.Phase) func(*corev1.Node) {
	return func(n *corev1.Node) { PutLeader(n, LeaderRecord(n.Name, "n2", p)) }
}

func leaderInFlight(n *corev1.Node) { leader(remediations.PhaseActing)(n) }

func sidecarInFlight(n *corev1.Node) {
	n.Annotations[remediations.RepairPrefix+"sidecar-3f"] = Record(remediations.PhaseActing).Encode()
}

func labelOnly(n *corev1.Node) { n.Labels[remediations.PhaseLabel] = "Acting" }

func malformed(n *corev1.Node) {
	n.Labels[remediations.PhaseLabel] = "Verifying"
	n.Annotations[remediations.NodeRepairKey] = "{"
}

func recordOnly(n *corev1.Node) { inFlight(n); delete(n.Labels, remediations.PhaseLabel) }

func observedNow(n *corev1.Node) {
	r := Record(remediations.PhaseVerifying)
	r.Policy = "only-observes"
	n.Annotations[remediations.NodeRepairKey] = r.Encode()
}

func requested(n *corev1.Node) {
	r := Record(remediations.PhasePending)
	r.Cause = remediations.Cause{Request: "remediation/reboot"}
	Put(n, r)
}

func tainted(n *corev1.Node) {
	r := Record(remediations.PhaseVerifying)
	r.Undo = []remediations.Undo{{Kind: remediations.UndoTaint, Key: "drydock.example/draining", At: Now}}
	Put(n, r)
	taint("drydock.example/draining", corev1.TaintEffectNoSchedule)(n)
	taint("example.com/other", corev1.TaintEffectNoSchedule)(n)
}

func replacing(phase remediations.Phase, step, uid string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		r := Record(phase)
		r.Step.Name, r.Intent.UID = step, uid
		Put(n, r)
	}
}

// The record of this reboot contains the words of a replacement's record.
func looksLikeReplacing(n *corev1.Node) {
	r := Record(remediations.PhaseVerifying)
	r.After = &remediations.After{ID: "a1b2c3", Step: remediations.StepRef{Name: "replace", Attempt: 1}}
	r.Intent.UID, r.Note = UID, `"phase":"Verifying","step":{"index":0,"name":"replace","attempt":1}`
	Put(n, r)
}

// A record without its end is unreadable.
func replacementCutOff(n *corev1.Node) {
	replacing(remediations.PhaseVerifying, "replace", UID)(n)
	n.Annotations[remediations.NodeRepairKey] = strings.TrimRight(n.Annotations[remediations.NodeRepairKey], "}")
}

// Only a later version of Drydock can read this record.
func replacementOfALaterVersion(n *corev1.Node) {
	replacing(remediations.PhaseVerifying, "replace", UID)(n)
	n.Annotations[remediations.NodeRepairKey] = strings.Replace(n.Annotations[remediations.NodeRepairKey], `"v":1`, `"v":2`, 1)
}

func breakGlass(before func(*corev1.Node)) func(*corev1.Node) {
	return func(n *corev1.Node) {
		before(n)
		n.Annotations[remediations.BreakGlassKey] = "the rack is on fire"
	}
}

func cordon(n *corev1.Node)   { n.Spec.Unschedulable = true }
func uncordon(n *corev1.Node) { n.Spec.Unschedulable = false }

func cordoned(before func(*corev1.Node)) func(*corev1.Node) {
	return func(n *corev1.Node) { before(n); cordon(n) }
}

func nothing(*corev1.Node) {}

// The owner does not exist, so the garbage collector would delete the Node.
func owned(n *corev1.Node) {
	n.OwnerReferences = append(n.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "5b0c1f7e-0000-4000-8000-000000000001"})
}

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func with(before func(*corev1.Node), key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { before(n); taint(key, effect)(n) }
}

func untaint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		var kept []corev1.Taint
		for _, t := range n.Spec.Taints {
			if t.Key != key {
				kept = append(kept, t)
			}
		}
		n.Spec.Taints = kept
	}
}

func annotate(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}
func remove(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { delete(n.Annotations, key); delete(n.Labels, key) }
}
func label(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// Cases returns the table of all requests.
func Cases() []Case {
	out := []Case{
		{Name: "a cordon of a node on which nothing goes on", Change: cordon, By: Person},
		{Name: "a cordon while Pending", Before: pending, Change: cordon, By: Person},
		{Name: "a cordon while Exhausted", Before: exhausted, Change: cordon, By: Person},
		{Name: "a cordon while a sidecar is repaired", Before: sidecarInFlight, Change: cordon, By: Person},
		{Name: "an uncordon while Exhausted", Before: cordoned(exhausted), Change: uncordon, By: Person, Reason: admission.ReasonUncordonExhausted, Warned: true},
		{Name: "an uncordon while Exhausted by an exempt controller", Before: cordoned(exhausted), Change: uncordon, By: Autoscale},
		{Name: "an uncordon while Pending", Before: cordoned(pending), Change: uncordon, By: Person},
		{Name: "a deletion while Pending", Before: pending, By: Person},
		{Name: "a deletion while Exhausted", Before: exhausted, By: Person},
		{Name: "a NoExecute taint while Pending", Before: pending, Change: taint("x", corev1.TaintEffectNoExecute), By: Person},
		{Name: "a label that is not ours in flight", Before: inFlight, Change: label("team", "a"), By: Person},
		{Name: "an annotation that is not ours in flight", Before: inFlight, Change: annotate("example.com/rack", "r2"), By: Person},
		{Name: "nothing at all in flight", Before: inFlight, Change: nothing, By: Person},

		{Name: "a cordon in flight", Before: inFlight, Change: cordon, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a cordon while Acting", Before: acting, Change: cordon, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a cordon while the mesh leader is repaired", Before: leaderInFlight, Change: cordon, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a cordon where only the label says so", Before: labelOnly, Change: cordon, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a cordon where the record is malformed", Before: malformed, Change: cordon, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a cordon where only the record says so", Before: recordOnly, Change: cordon, By: Person, Reason: admission.ReasonCordon, Denied: true},
		{Name: "a cordon during a repair of a policy that observes now", Before: observedNow, Change: cordon, By: Person, Reason: admission.ReasonCordon, Warned: true},
		{Name: "an uncordon in flight", Before: cordoned(inFlight), Change: uncordon, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a deletion in flight", Before: inFlight, By: Person, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "the removal of our taint in flight", Before: tainted, Change: untaint("drydock.example/draining"), By: Person, Reason: admission.ReasonTaintRemoved, Denied: true},
		{Name: "the removal of another taint in flight", Before: tainted, Change: untaint("example.com/other"), By: Person},
		{Name: "a NoExecute taint in flight", Before: inFlight, Change: taint("x", corev1.TaintEffectNoExecute), By: Person, Reason: admission.ReasonNoExecute, Denied: true},
		{Name: "a NoSchedule taint in flight", Before: inFlight, Change: taint("x", corev1.TaintEffectNoSchedule), By: Person},
		{Name: "the mesh leader's key in flight", Before: inFlight, Change: annotate(admission.MeshLeaderKey, ""), By: Person, Reason: admission.ReasonMeshLeader, Denied: true},
		{Name: "the mesh leader's key taken off in flight", Before: func(n *corev1.Node) { inFlight(n); n.Annotations[admission.MeshLeaderKey] = "" }, Change: remove(admission.MeshLeaderKey), By: Person, Reason: admission.ReasonMeshLeader, Denied: true},
		{Name: "the mesh leader's key while Pending", Before: pending, Change: annotate(admission.MeshLeaderKey, ""), By: Person},
		{Name: "the mesh leader's key while its leadership is moved", Before: leaderInFlight, Change: annotate(admission.MeshLeaderKey, ""), By: Person, Reason: admission.ReasonMeshLeader, Denied: true},
		{Name: "the mesh leader's key while the move is to be proven", Before: leader(remediations.PhaseVerifying), Change: annotate(admission.MeshLeaderKey, ""), By: Kilo, Reason: admission.ReasonMeshLeader, Denied: true},
		{Name: "the mesh leader's key taken off while its leadership is moved", Before: func(n *corev1.Node) { leaderInFlight(n); n.Annotations[admission.MeshLeaderKey] = "" }, Change: remove(admission.MeshLeaderKey), By: Person, Reason: admission.ReasonMeshLeader, Denied: true},
		{Name: "the mesh leader's key with break-glass", Before: breakGlass(leaderInFlight), Change: annotate(admission.MeshLeaderKey, ""), By: Person, Reason: admission.ReasonMeshLeader, BreakGlass: true},
		{Name: "the mesh leader's key while its repair is only held", Before: leader(remediations.PhasePending), Change: annotate(admission.MeshLeaderKey, ""), By: Person},
		{Name: "the mesh leader's key when its repair has run out", Before: leader(remediations.PhaseExhausted), Change: annotate(admission.MeshLeaderKey, ""), By: Person},
		{Name: "a deletion while the mesh leader is repaired", Before: leaderInFlight, By: Person, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "a request while the mesh leader is repaired", Before: leader(remediations.PhaseVerifying), Change: annotate(remediations.RequestKey, "reboot"), By: Person, Reason: admission.ReasonRequestInFlight, Denied: true},
		{Name: "a leader's record by a person", Change: annotate(remediations.LocationKey, LeaderRecord(Node, "n2", remediations.PhasePending).Encode()), By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "a leader's record taken off in flight", Before: leaderInFlight, Change: remove(remediations.LocationKey), By: Person, Reason: admission.ReasonOwnKeyRemoved, Denied: true, Core: true},
		{Name: "a leader's record taken off when it has run out", Before: leader(remediations.PhaseExhausted), Change: remove(remediations.LocationKey), By: Person},
		{Name: "a cancel of the leader's repair", Before: leaderInFlight, Change: annotate(remediations.CancelKey, ID), By: Person},
		{Name: "a request in flight", Before: inFlight, Change: annotate(remediations.RequestKey, "reboot"), By: Person, Reason: admission.ReasonRequestInFlight, Denied: true},

		{Name: "a record by a person", Change: annotate(remediations.NodeRepairKey, Record(remediations.PhasePending).Encode()), By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "a record by one who is exempt", Change: annotate(remediations.NodeRepairKey, "{}"), By: Autoscale, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "a record with break-glass", Before: breakGlass(nothing), Change: annotate(remediations.NodeRepairKey, "{}"), By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "an alert by a person", Change: annotate(remediations.AlertPrefix+"9f2c0e5b6d1a4c33", "{}"), By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "a history by a person", Change: annotate(remediations.HistoryKey, "[]"), By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "the phase label by a person", Before: inFlight, Change: label(remediations.PhaseLabel, "Pending"), By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "a Node made with a record", Create: true, Change: inFlight, By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "a Node made with nothing of ours", Create: true, Change: nothing, By: Person},
		{Name: "a record by a person through nodes/status", Status: true, Change: annotate(remediations.NodeRepairKey, "{}"), By: Person, Reason: admission.ReasonOwnKey, Denied: true, Core: true},
		{Name: "a record taken off while Pending", Before: pending, Change: remove(remediations.NodeRepairKey), By: Person},
		{Name: "a record taken off in flight", Before: inFlight, Change: remove(remediations.NodeRepairKey), By: Person, Reason: admission.ReasonOwnKeyRemoved, Denied: true, Core: true},
		{Name: "a record taken off in flight by one who is exempt", Before: inFlight, Change: remove(remediations.NodeRepairKey), By: Autoscale, Reason: admission.ReasonOwnKeyRemoved, Denied: true, Core: true},
		{Name: "the label taken off in flight", Before: inFlight, Change: remove(remediations.PhaseLabel), By: Person, Reason: admission.ReasonOwnKeyRemoved, Denied: true, Core: true},
		{Name: "the label taken off in flight with break-glass", Before: breakGlass(inFlight), Change: remove(remediations.PhaseLabel), By: Person, Reason: admission.ReasonOwnKeyRemoved, BreakGlass: true},
		{Name: "a record by Drydock", Change: inFlight, By: Drydock},
		{Name: "a record taken off in flight by Drydock", Before: inFlight, Change: remove(remediations.NodeRepairKey), By: Drydock},
		{Name: "a cordon in flight by Drydock", Before: inFlight, Change: cordon, By: Drydock},

		{Name: "a cordon with break-glass", Before: breakGlass(inFlight), Change: cordon, By: Person, Reason: admission.ReasonCordon, BreakGlass: true},
		{Name: "a deletion with break-glass", Before: breakGlass(inFlight), By: Person, Reason: admission.ReasonDeletion, BreakGlass: true},
		{Name: "a cordon that sets break-glass in the same request", Before: inFlight, Change: func(n *corev1.Node) { breakGlass(cordon)(n) }, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a cordon with break-glass where no repair runs", Before: breakGlass(nothing), Change: cordon, By: Person},
		{Name: "break-glass set in flight", Before: inFlight, Change: breakGlass(nothing), By: Person},
		{Name: "the glass broken without a reason", Before: inFlight, Change: annotate(remediations.BreakGlassKey, ""), By: Person, Reason: admission.ReasonUnreadable, Warned: true},

		{Name: "a request by a person", Change: annotate(remediations.RequestKey, "reboot"), By: Person},
		{Name: "a request that nobody understands", Change: annotate(remediations.RequestKey, "rebooot"), By: Person, Reason: admission.ReasonUnreadable, Warned: true},
		{Name: "a request to a policy that observes", Change: annotate(remediations.RequestKey, "policy/only-observes"), By: Person, Reason: admission.ReasonRequestIdle, Warned: true},
		{Name: "a second request", Before: annotate(remediations.RequestKey, "policy/node-not-ready"), Change: annotate(remediations.RequestKey, "reboot"), By: Person, Reason: admission.ReasonRequestPending, Denied: true},
		{Name: "a second request by one who is exempt", Before: annotate(remediations.RequestKey, "policy/node-not-ready"), Change: annotate(remediations.RequestKey, "reboot"), By: Autoscale, Reason: admission.ReasonRequestPending, Denied: true},
		{Name: "a request while an earlier one is Pending", Before: requested, Change: annotate(remediations.RequestKey, "reboot"), By: Person, Reason: admission.ReasonRequestPending, Denied: true},
		{Name: "a request while Exhausted", Before: exhausted, Change: annotate(remediations.RequestKey, "reboot"), By: Person, Reason: admission.ReasonRequestExhausted, Warned: true},
		{Name: "a request while an alert's repair is Pending", Before: pending, Change: annotate(remediations.RequestKey, "reboot"), By: Person},
		{Name: "a request taken back", Before: annotate(remediations.RequestKey, "reboot"), Change: remove(remediations.RequestKey), By: Person},
		{Name: "a pause", Before: inFlight, Change: annotate(remediations.PauseKey, "true at work on it"), By: Person},
		{Name: "a pause that nobody understands", Change: annotate(remediations.PauseKey, "tomorrow"), By: Person, Reason: admission.ReasonUnreadable, Warned: true},
		{Name: "a reset that nobody understands", Change: annotate(remediations.ResetKey, "yes"), By: Person, Reason: admission.ReasonUnreadable, Warned: true},
		{Name: "a cancel of the repair", Before: inFlight, Change: annotate(remediations.CancelKey, ID), By: Person},
		{Name: "a cancel of another repair", Before: inFlight, Change: annotate(remediations.CancelKey, "zzzzzz"), By: Person, Reason: admission.ReasonUnknownRepair, Warned: true},
		{Name: "an approval where nothing goes on", Change: annotate(remediations.ApproveKey, ID), By: Person, Reason: admission.ReasonUnknownRepair, Warned: true},
		{Name: "a key misspelt", Change: annotate("drydock.dev/pasue", "true"), By: Person, Reason: admission.ReasonUnreadable, Warned: true},
		{Name: "an exclusion", Before: inFlight, Change: label(remediations.ExcludeLabel, "true"), By: Person},
		{Name: "a cordon that collides with what observe mode would do", Before: observing, Change: cordon, By: Person, Reason: admission.ReasonWouldCollide, Warned: true},

		{Name: "a kubelet that asks for its own repair", Change: annotate(remediations.RequestKey, "reboot"), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet that asks through nodes/status", Status: true, Change: annotate(remediations.RequestKey, "reboot"), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet that forges a record through nodes/status", Status: true, Change: annotate(remediations.NodeRepairKey, Record(remediations.PhaseActing).Encode()), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet that takes the label off through nodes/status", Status: true, Before: inFlight, Change: remove(remediations.PhaseLabel), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet that takes a pause off", Status: true, Before: annotate(remediations.PauseKey, "true"), Change: remove(remediations.PauseKey), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet that sets break-glass", Before: inFlight, Change: breakGlass(nothing), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet with break-glass", Status: true, Before: breakGlass(inFlight), Change: remove(remediations.BreakGlassKey), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet that excludes itself", Change: label(remediations.ExcludeLabel, "true"), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet that registers with a request", Create: true, Change: annotate(remediations.RequestKey, "reboot"), By: Kubelet, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a node's name without the nodes' group", Change: annotate(remediations.PauseKey, "true"), By: NodeUser, Reason: admission.ReasonNodeIdentity, Denied: true, Core: true},
		{Name: "a kubelet's label in flight", Before: inFlight, Change: label("beta.kubernetes.io/os", "linux"), By: Kubelet},
		{Name: "a kubelet's annotation in flight", Status: true, Before: inFlight, Change: annotate("volumes.kubernetes.io/controller-managed-attach-detach", "true"), By: Kubelet},
		{Name: "a kubelet cordons its own node in flight", Before: inFlight, Change: cordon, By: Kubelet},
		{Name: "a kubelet registers", Create: true, Change: nothing, By: Kubelet},
	}
	return slices.Concat(out, removing(), owning(), driving(), working(), clusterTraffic())
}

// The cluster's own components must be allowed during a repair.
func clusterTraffic() []Case {
	var out []Case
	for name, c := range map[string]Case{
		"Cilium removes its taint":                          {Before: with(inFlight, "node.cilium.io/agent-not-ready", corev1.TaintEffectNoExecute), Change: untaint("node.cilium.io/agent-not-ready"), By: Cilium},
		"the cloud's controller removes its taint":          {Before: with(inFlight, "node.cloudprovider.kubernetes.io/uninitialized", corev1.TaintEffectNoSchedule), Change: untaint("node.cloudprovider.kubernetes.io/uninitialized"), By: Cloud},
		"the cloud's controller deletes the node":           {Before: inFlight, By: Cloud},
		"the GPU operator removes its taint":                {Before: with(inFlight, "nvidia.com/gpu", corev1.TaintEffectNoSchedule), Change: untaint("nvidia.com/gpu"), By: GPU},
		"the GPU operator cordons for a driver":             {Before: inFlight, Change: cordon, By: GPU},
		"the node controller taints, by its account":        {Before: inFlight, Change: taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), By: NodeCtl},
		"the node controller taints, as the manager":        {Before: inFlight, Change: taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), By: Manager},
		"the node controller untaints, as the manager":      {Before: with(inFlight, corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), Change: untaint(corev1.TaintNodeNotReady), By: Manager},
		"Kilo checks in":                                    {Before: inFlight, Change: annotate("kilo.squat.ai/last-seen", "1763672520"), By: Kilo},
		"the cluster autoscaler deletes the node":           {Before: inFlight, By: Autoscale},
		"the cluster autoscaler marks the node":             {Before: inFlight, Change: taint("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule), By: Autoscale},
		"an exempt controller takes our taint off":          {Before: tainted, Change: untaint("drydock.example/draining"), By: GPU},
		"an exempt controller asks for a repair in flight":  {Before: inFlight, Change: annotate(remediations.RequestKey, "reboot"), By: GPU},
		"an exempt controller moves the leader meanwhile":   {Before: leaderInFlight, Change: annotate(admission.MeshLeaderKey, ""), By: GPU},
		"an exempt controller chooses the leader in flight": {Before: inFlight, Change: annotate(admission.MeshLeaderKey, ""), By: GPU},
	} {
		c.Name = strings.TrimSpace(name)
		out = append(out, c)
	}
	return out
}

// Forge is a change that only Drydock may make.
func Forge(n *corev1.Node) { inFlight(n) }

// Annotate returns a change that sets an annotation.
func Annotate(key, value string) func(*corev1.Node) { return annotate(key, value) }
