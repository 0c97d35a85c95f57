package remediations

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

// replace has the provider delete the machine and build another one. Its proof is another machine
// with another Node, and the provider's confirmation that the old machine is gone. A Node that was
// only deleted and registered again is the same machine. A provider that promises no other machine
// may answer that a new machine is not needed.
var replace = Remediation{
	Name: "replace", Verb: "replace", Disruptive: true, Once: true, LooksFirst: true, Replaces: true, Wait: 20 * time.Minute, Attempts: 1, Invasive: 10,
	Refuses: func(n *corev1.Node) string {
		if ControlPlane(n) {
			return "a control-plane node is never replaced: its etcd member would be lost with it"
		}
		if mark := signs.GPUMark(n); mark != "" {
			return "a GPU node is never replaced, since its machine is scarce: " + mark
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
			return true, "" // there is no Node, and none has to join
		case n.ProviderID == intent.ProviderID || n.ProviderID == "":
			return false, "no Node of the new machine has joined yet"
		}
		return true, ""
	},
}

// Asked is the intent that a question was about, and the time of the question.
type Asked struct {
	Intent string
	At     time.Time
}

// About reports whether the answer is about this intent and was requested after it. An older answer
// is about another step.
func (a Asked) About(i *Intent) bool { return i != nil && a.Intent == i.ID && !a.At.Before(i.At) }

// Replacement is the provider's answer about a machine that it has to replace or to switch off.
type Replacement struct {
	Asked
	// MachineGone: the old machine is certainly off for good or, if the step only switches it off,
	// it is off. Only the provider of machines can confirm this: a deleted pod or Node proves
	// nothing about its machine.
	MachineGone bool
	// Successors are the provider IDs of the machines that may have replaced it.
	Successors []string
	// NoneNeeded: the old machine is gone, no other machine has come or is expected, and nothing
	// waits for one. It counts only from a provider that promises no other machine
	// (Provider.PromisesNone), and once it has held for a while.
	NoneNeeded bool
	// Missing is what the provider's proof still lacks; empty: nothing.
	Missing string
	// Blocked is what delays the removal of the old machine, in the words of the system that
	// replaces it; empty: nothing is known.
	Blocked string
}

// PodProof is the cluster's answer about pods that a step had created again.
type PodProof struct {
	Asked
	// Missing is what the proof still lacks; empty: nothing.
	Missing string
}

// Answers are the answers about a step since its intent; nil: no answer about this intent yet.
type Answers struct {
	Machine *Replacement
	Pods    *PodProof
}
