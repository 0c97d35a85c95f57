package remediations

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// replace lets the provider delete the machine and build another one. Its proof is a new machine
// with a new Node, and the provider's confirmation that the old machine is gone. A new Node alone
// is not enough: the old machine may have registered again. A provider that promises no new machine
// (PromisesNone) may instead answer that the cluster needs none.
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

// Asked identifies the question that an answer belongs to: the id of the intent, and when Drydock
// asked.
type Asked struct {
	Intent string
	At     time.Time
}

// About reports whether the answer is about this intent, and Drydock asked after the time of the
// intent.
func (a Asked) About(i *Intent) bool { return i != nil && a.Intent == i.ID && !a.At.Before(i.At) }

// Replacement is the provider's answer about a machine that it must replace or switch off.
type Replacement struct {
	Asked
	// MachineGone reports that the old machine is certainly off for good. For a step that only
	// switches the machine off, it reports that the machine is off. Only a provider of machines can
	// know this. The deletion of a pod or a Node proves nothing about the machine.
	MachineGone bool
	// Successors are the provider IDs of the machines that may have replaced the old one.
	Successors []string
	// NoneNeeded reports that the old machine is gone and that the cluster needs no new one.
	// Drydock ignores it unless Provider.PromisesNone is set and the provider has reported the same
	// for a while.
	NoneNeeded bool
	// Missing is what the provider's proof still lacks. It is empty if the proof is complete.
	Missing string
	// Blocked is the provider's message about what delays the removal of the old machine. It is
	// empty if nothing is known.
	Blocked string
}

// PodProof is the answer to the question whether the pods that a step restarted are Ready again.
type PodProof struct {
	Asked
	// Missing is what the proof still lacks. It is empty if the proof is complete.
	Missing string
}

// Answers has the answers about a step to questions that Drydock asked after the step's intent. A
// nil field means that there is no such answer yet.
type Answers struct {
	Machine *Replacement
	Pods    *PodProof
}
