package requests

import (
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// These requests need the verb reset, whatever the state of the node's repair is.
func removing() []Case {
	alerted := func(n *corev1.Node) { pending(n); n.Annotations[remediations.AlertPrefix+"9f2c0e5b6d1a4c33"] = "{}" }
	remembered := func(n *corev1.Node) { n.Annotations[remediations.HistoryKey] = "[]" }
	sidecar := remediations.RepairPrefix + "sidecar-3f"
	removals := []Case{
		{Name: "the record of an Exhausted repair", Before: exhausted, Change: remove(remediations.NodeRepairKey)},
		{Name: "the label of an Exhausted repair", Before: exhausted, Change: remove(remediations.PhaseLabel)},
		{Name: "an alert", Before: alerted, Change: remove(remediations.AlertPrefix + "9f2c0e5b6d1a4c33")},
		{Name: "the history", Before: remembered, Change: remove(remediations.HistoryKey)},
		{Name: "the history under break-glass", Before: breakGlass(remembered), Change: remove(remediations.HistoryKey)},
		{Name: "the history through nodes/status", Before: remembered, Change: remove(remediations.HistoryKey), Status: true},
		{Name: "a sidecar's record", Before: sidecarInFlight, Change: remove(sidecar)},
		{Name: "a location's record", Before: leader(remediations.PhaseExhausted), Change: remove(remediations.LocationKey)},
	}
	var out []Case
	for _, c := range removals {
		what := c.Name
		c.Name, c.By = "a person with the verb reset removes "+what, Person
		out = append(out, c)
		c.Unentitled, c.Reason, c.Denied, c.Core = true, admission.ReasonRightMissing, true, true
		for _, c.By = range []User{Person, Manager, GPU, Driver} {
			c.Name = c.By.Name + " without the verb reset removes " + what
			out = append(out, c)
		}
	}
	return append(out,
		Case{Name: "Drydock removes the record of an Exhausted repair", Before: exhausted, Change: remove(remediations.NodeRepairKey), By: Drydock, Unentitled: true},
		Case{Name: "a record taken off in flight without the verb reset", Before: inFlight, Change: remove(remediations.NodeRepairKey), By: Person, Unentitled: true, Reason: admission.ReasonRightMissing, Denied: true, Core: true},
		Case{Name: "a record taken off under break-glass without the verb reset", Before: breakGlass(inFlight), Change: remove(remediations.NodeRepairKey), By: Person, Unentitled: true, Reason: admission.ReasonRightMissing, Denied: true, Core: true},
		Case{Name: "a Node with a record deleted without the verb reset", Before: exhausted, By: Person, Unentitled: true},
		Case{Name: "another annotation removed without the verb reset", Before: exhausted, Change: remove("example.com/rack"), By: Person, Unentitled: true},
	)
}

// The garbage collector deletes a Node whose owners are gone.
func owning() []Case {
	replaced := replacing(remediations.PhaseVerifying, "replace", UID)
	return []Case{
		{Name: "an owner in flight", Before: inFlight, Change: owned, By: Person, Reason: admission.ReasonOwnerReferences, Denied: true, Core: true},
		{Name: "an owner in flight through nodes/status", Before: inFlight, Change: owned, Status: true, By: Person, Reason: admission.ReasonOwnerReferences, Denied: true, Core: true},
		{Name: "an owner in flight by the nodes' group", Before: inFlight, Change: owned, By: User{"kubelet", Kubelet.Groups}, Reason: admission.ReasonOwnerReferences, Denied: true, Core: true},
		{Name: "an owner in flight by a driver's manager", Before: inFlight, Change: owned, By: Driver, Reason: admission.ReasonOwnerReferences, Denied: true, Core: true},
		{Name: "an owner in flight by one who is exempt", Before: inFlight, Change: owned, By: Autoscale},
		{Name: "an owner in flight by Drydock", Before: inFlight, Change: owned, By: Drydock},
		{Name: "an owner in flight under break-glass", Before: breakGlass(inFlight), Change: owned, By: Person, Reason: admission.ReasonOwnerReferences, BreakGlass: true},
		{Name: "an owner of the node that Karpenter replaces, by Karpenter", Before: replaced, Change: owned, By: Karpenter},
		{Name: "an owner while Pending", Before: pending, Change: owned, By: Person},
		{Name: "an owner while Exhausted", Before: exhausted, Change: owned, By: Person},
		{Name: "an owner where no repair is", Change: owned, By: Person},
		{Name: "a Node that is made with an owner", Create: true, Change: owned, By: Karpenter},
	}
}

// Driver managers work on a node that has booted again. The phase Verifying waits for what they do.
func driving() []Case {
	return []Case{
		{Name: "a driver's manager cordons while Verifying", Before: inFlight, Change: cordon, By: Driver},
		{Name: "a driver's manager uncordons while Verifying", Before: cordoned(inFlight), Change: uncordon, By: Driver},
		{Name: "a driver's manager cordons while Verifying where only the record says so", Before: recordOnly, Change: cordon, By: Driver},
		{Name: "a driver's manager cordons while Verifying and the record is malformed", Before: malformed, Change: cordon, By: Driver},
		{Name: "a driver's manager cordons while Acting", Before: acting, Change: cordon, By: Driver, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a driver's manager uncordons while Acting", Before: cordoned(acting), Change: uncordon, By: Driver, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "a driver's manager deletes the node while Verifying", Before: inFlight, By: Driver, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "a driver's manager evicts all at once while Verifying", Before: inFlight, Change: taint("x", corev1.TaintEffectNoExecute), By: Driver, Reason: admission.ReasonNoExecute, Denied: true},
		{Name: "another account of that namespace cordons while Verifying", Before: inFlight, Change: cordon, By: User{"system:serviceaccount:nvidia-gpu-operator:nvidia-dcgm", Driver.Groups}, Reason: admission.ReasonCordon, Denied: true, Core: true},
	}
}

// working returns changes by the users that carry out a step, and changes that only look like them.
func working() []Case {
	const another = "00000000-0000-0000-0000-000000000000"
	replaced := replacing(remediations.PhaseVerifying, "replace", UID)
	return []Case{
		{Name: "Karpenter deletes the node that it replaces", Before: replaced, By: Karpenter},
		{Name: "Karpenter deletes it before its answer is there", Before: replacing(remediations.PhaseActing, "replace", UID), By: Karpenter},
		{Name: "Karpenter cordons the node that it replaces", Before: replaced, Change: cordon, By: Karpenter},
		{Name: "Karpenter taints the node that it replaces", Before: replaced, Change: taint("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule), By: Karpenter},
		{Name: "the Machine API deletes the node that it replaces for a remediator", Before: replacing(remediations.PhaseVerifying, "external-replace", UID), By: Machines},
		{Name: "the Machine API cordons a node that a remediator reboots", Before: replacing(remediations.PhaseVerifying, "external", UID), Change: cordon, By: Machines, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "Karpenter deletes a node whose replacement ran out", Before: exhausted, By: Karpenter},
		{Name: "Karpenter uncordons it", Before: cordoned(replaced), Change: uncordon, By: Karpenter, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "Karpenter takes its record off", Before: replaced, Change: remove(remediations.NodeRepairKey), By: Karpenter, Reason: admission.ReasonOwnKeyRemoved, Denied: true, Core: true},
		{Name: "Karpenter evicts all at once", Before: replaced, Change: taint("x", corev1.TaintEffectNoExecute), By: Karpenter, Reason: admission.ReasonNoExecute, Denied: true},
		{Name: "a person deletes the node that Karpenter replaces", Before: replaced, By: Person, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "a person cordons the node that Karpenter replaces", Before: replaced, Change: cordon, By: Person, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "Karpenter deletes a node that is drained", Before: replacing(remediations.PhaseActing, "drain", UID), By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter cordons a node that is rebooted", Before: replacing(remediations.PhaseVerifying, "reboot", UID), Change: cordon, By: Karpenter, Reason: admission.ReasonCordon, Denied: true, Core: true},
		{Name: "Karpenter deletes the node that came for it", Before: replacing(remediations.PhaseVerifying, "replace", another), By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter deletes a node whose record has no UID", Before: replacing(remediations.PhaseVerifying, "replace", ""), By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter deletes a node whose record only looks like it", Before: looksLikeReplacing, By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter deletes the node that the Machine API replaces", Before: replacing(remediations.PhaseVerifying, "external-replace", UID), By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "the Machine API deletes the node that Karpenter replaces", Before: replaced, By: Machines, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter deletes a node whose record is cut off", Before: replacementCutOff, By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter deletes a node whose record is of a later version", Before: replacementOfALaterVersion, By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter deletes a node whose record is malformed", Before: malformed, By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
		{Name: "Karpenter deletes a node where only the label says so", Before: labelOnly, By: Karpenter, Reason: admission.ReasonDeletion, Denied: true, Core: true},
	}
}
