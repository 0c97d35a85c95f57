package remediations

import (
	"slices"
	"time"
)

// A drain cures nothing, so its own proof always fails.
var drain = Remediation{
	Name: "drain", Verb: "drain", Disruptive: true, Timeout: 30 * time.Minute, Invasive: 9,
	Proof: func(intent *Intent, _ *NodeFacts, _ Answers) (bool, string) {
		if intent.Why != "" {
			return false, "the drain ended: " + intent.Why
		}
		return false, "a drain alone cures nothing"
	},
}

// WithoutController is what a drain does with pods that no controller creates again after an
// eviction.
type WithoutController string

const (
	// WithoutControllerRefuse does not drain a node that has such a pod.
	WithoutControllerRefuse WithoutController = ""
	// WithoutControllerWait evicts all other pods, and waits until these have ended.
	WithoutControllerWait WithoutController = "wait"
	// WithoutControllerEvict evicts these pods like all other pods.
	WithoutControllerEvict WithoutController = "evict"
)

// GivesUpPods reports whether the repair has drained the node with a step that continues after a
// timeout. Later steps then do not wait for pods that the drain did not evict.
func (p *Policy) GivesUpPods(r *Record) bool {
	return r.Drained() && slices.ContainsFunc(p.Plan[:min(r.Step.Index, len(p.Plan))], func(s Step) bool {
		return s.Name == drain.Name && s.ContinueOnTimeout
	})
}
