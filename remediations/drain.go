package remediations

import (
	"slices"
	"time"
)

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

// GivesUpPods says that the repair has drained the node, and that its policy goes on with the pods that were not evicted in time
// (`onTimeout: continue`): nobody needs to wait for them again.
func (p *Policy) GivesUpPods(r *Record) bool {
	return r.Drained() && slices.ContainsFunc(p.Plan[:min(r.Step.Index, len(p.Plan))], func(s Step) bool {
		return s.Name == drain.Name && s.ContinueOnTimeout
	})
}
