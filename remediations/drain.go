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

// WithoutController is what a drain does with pods that have no controller: nothing would create them again.
type WithoutController string

const (
	// WithoutControllerRefuse does not drain the node while it has such a pod.
	WithoutControllerRefuse WithoutController = ""
	// WithoutControllerWait evicts all other pods, and waits until these have ended.
	WithoutControllerWait WithoutController = "wait"
	// WithoutControllerEvict evicts them like all others.
	WithoutControllerEvict WithoutController = "evict"
)

// GivesUpPods says that the repair has drained the node, and that its policy goes on with the pods that were not evicted in time
// (`onTimeout: continue`): nobody needs to wait for them again.
func (p *Policy) GivesUpPods(r *Record) bool {
	return r.Drained() && slices.ContainsFunc(p.Plan[:min(r.Step.Index, len(p.Plan))], func(s Step) bool {
		return s.Name == drain.Name && s.ContinueOnTimeout
	})
}
