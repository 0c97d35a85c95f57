package remediations

import (
	"slices"
	"time"
)

// drain empties a node before the node is replaced. It cordons the node and evicts pods within the
// bounds that people set. A drain cures nothing, so only the step that follows can prove a cure.
var drain = Remediation{
	Name: "drain", Verb: "drain", Disruptive: true, Timeout: 30 * time.Minute, Invasive: 9,
	Proof: func(intent *Intent, _ *NodeFacts, _ Answers) (bool, string) {
		if intent.Why != "" {
			return false, "the drain ended: " + intent.Why
		}
		return false, "a drain alone cures nothing"
	},
}

// WithoutController is what a drain does with pods that have no controller. No controller would
// create them again.
type WithoutController string

const (
	// WithoutControllerRefuse does not drain a node that has such a pod.
	WithoutControllerRefuse WithoutController = ""
	// WithoutControllerWait evicts all other pods, and waits until the pods without a controller
	// have ended.
	WithoutControllerWait WithoutController = "wait"
	// WithoutControllerEvict evicts them like all other pods.
	WithoutControllerEvict WithoutController = "evict"
)

// GivesUpPods reports whether the repair has drained the node and its policy continues without the
// evictions that timed out (`onTimeout: continue`). Later steps need not wait for these pods again.
func (p *Policy) GivesUpPods(r *Record) bool {
	return r.Drained() && slices.ContainsFunc(p.Plan[:min(r.Step.Index, len(p.Plan))], func(s Step) bool {
		return s.Name == drain.Name && s.ContinueOnTimeout
	})
}
