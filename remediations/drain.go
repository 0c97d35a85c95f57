package remediations

import "time"

// drain empties a node before it is replaced: cordon, then evictions that respect what people asked for. It cures
// nothing, so nothing proves it; what follows it does.
var drain = Remediation{
	Name: "drain", Verb: "drain", Disruptive: true, Timeout: 30 * time.Minute, Invasive: 9,
	Proof: func(intent *Intent, _ *NodeFacts, _ Answers) (bool, string) {
		if intent.Why != "" {
			return false, "the drain ended: " + intent.Why
		}
		return false, "a drain alone cures nothing"
	},
}
