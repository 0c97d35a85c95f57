package remediations

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// The proof is a new machine with a new Node, and the provider's confirmation that the old machine
// is gone: with a new Node alone, the old machine may have registered again. A provider that
// promises no new machine may instead answer that the cluster needs none.
var replace = Remediation{
	Name: "replace", Verb: "replace", Disruptive: true, Once: true, LooksFirst: true, Replaces: true, Wait: 20 * time.Minute, Attempts: 1, Invasive: 10,
	Refuses: func(n *corev1.Node) string {
		if ControlPlane(n) {
			return "a control-plane node is never replaced, because its etcd member would be lost"
		}
		if mark := signs.GPUMark(n); mark != "" {
			return "a GPU node is never replaced, because GPU machines are scarce: " + mark
		}
		return ""
	},
	Proof: func(intent *Intent, n *NodeFacts, a Answers) (bool, string) {
		switch r := a.Machine; {
		case r == nil:
			return false, "the provider has not been asked yet whether the machine was replaced"
		case r.Missing != "":
			return false, r.Missing
		case n.UID == intent.UID:
			return false, "the old machine's Node is still there"
		case r.NoneNeeded && n.UID == "":
			return true, "" // the old Node is gone, and no new Node has to join
		case n.ProviderID == intent.ProviderID || n.ProviderID == "":
			return false, "no Node of the new machine has joined yet"
		}
		return true, ""
	},
}

// Asked identifies the question that an answer belongs to: the intent's id, and when it was asked.
type Asked struct {
	Intent string
	At     time.Time
}

// About reports whether the answer is about this intent, to a question from after the intent.
func (a Asked) About(i *Intent) bool { return i != nil && a.Intent == i.ID && !a.At.Before(i.At) }

// Replacement is the provider's answer about a machine that it must replace or switch off.
type Replacement struct {
	Asked
	// The old machine is certainly off for good or, for a step that only switches it off, off. Only
	// a provider of machines can know this: the deletion of a pod or a Node proves nothing about
	// the machine.
	MachineGone bool
	// The provider IDs of the machines that may have replaced the old one.
	Successors []string
	// The old machine is gone and the cluster needs no new one. Ignored unless
	// Provider.PromisesNone is set and the provider has reported the same for a while.
	NoneNeeded bool
	// What the provider's proof still lacks. Empty if it is complete.
	Missing string
	// What delays the removal of the old machine, in the provider's words. Empty if nothing is
	// known.
	Blocked string
}

// PodProof is the answer whether the pods that a step restarted are Ready again.
type PodProof struct {
	Asked
	// What the proof still lacks. Empty if it is complete.
	Missing string
}

// Answers are the answers to questions that were asked after the step's intent. Nil means that
// there is none yet.
type Answers struct {
	Machine *Replacement
	Pods    *PodProof
}
