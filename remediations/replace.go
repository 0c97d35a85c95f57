package remediations

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// replace has the provider delete the machine and build another one. Its proof is another machine under another Node,
// and the provider's word that the old one is gone: a Node that was only deleted and registered again is the same
// machine.
var replace = Remediation{
	Name: "replace", Verb: "replace", Disruptive: true, Once: true, LooksFirst: true, asks: true, Wait: 20 * time.Minute, Invasive: 10,
	refuses: func(n *corev1.Node) string {
		if ControlPlane(n) {
			return "a control-plane node is never replaced: its etcd member would be lost with it"
		}
		return ""
	},
	proof: func(intent *Intent, n *NodeFacts, r *Replacement) (bool, string) {
		switch {
		case r == nil:
			return false, "the provider has not been asked yet whether the machine was replaced"
		case r.Missing != "":
			return false, r.Missing
		case n.UID == intent.UID:
			return false, "the old machine's Node is still there"
		case n.ProviderID == intent.ProviderID || n.ProviderID == "":
			return false, "no Node of the new machine has joined yet"
		}
		return true, ""
	},
}

// Before is what the provider said of a machine right before it was told to replace it, kept with the intent: without
// it nobody could prove afterwards that the machine was replaced and not merely deleted. Of a pod that is to be deleted it
// has the UID as Instance, the node as Hostname, and the DaemonSet as Pool.
type Before struct {
	Instance string `json:"instance"`
	Hostname string `json:"hostname"`
	Pool     string `json:"pool"`
	// Count is how many instances the pool is to have.
	Count int `json:"count"`
	// Newest is when the youngest instance was made, by the provider's clock: what is younger came later.
	Newest time.Time `json:"newest,omitzero"`
}

// Replacement is what the provider says of a machine that it was told to replace, or a cluster of a pod.
type Replacement struct {
	AskedAt time.Time
	// OldGone: the old machine is certainly off for good.
	OldGone bool
	// Successors are the provider IDs of the machines that may have come for it.
	Successors []string
	// Missing is what the provider's proof still lacks; empty: nothing.
	Missing string
}
