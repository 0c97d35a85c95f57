package admission

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// repair says whether a repair is in flight on a node.
type repair struct {
	node string
	// The record of the repair in flight. Nil if there is none, or if it cannot be read.
	record *remediations.Record
	// The record of the node's repair in any phase. Nil if there is none, or if it cannot be read.
	recorded *remediations.Record
	// The phase in the Node's label.
	phase remediations.Phase
	// The policy of the repair is in observe mode now.
	observed bool
	// The Kubernetes users that carry out the current step of the repair.
	workers []string
	// A repair in flight of the leader of the node's mesh location, with its record on another
	// node. Only the rule about the leader annotation reads it.
	mesh *repair
}

// repairOf reads the repair from the Node. A repair counts as in flight if the record or the phase
// label shows this. The ValidatingAdmissionPolicy reads only the label, and both checks should give
// the same result.
//
// The results differ in one case: a person switches the policy of a repair in flight to observe
// mode. Until the step is proven or its deadline has passed, the label still shows the repair. The
// label does not name the policy, so the ValidatingAdmissionPolicy denies a change. This package
// only warns about that change (docs/reference/admission.md).
func repairOf(c *remediations.Config, n *corev1.Node) *repair {
	if n == nil {
		return &repair{}
	}
	on := &repair{
		node: n.Name, record: c.Registry.InFlight(n), recorded: c.Registry.ReadJournal(n).Record,
		phase: remediations.Phase(n.Labels[remediations.PhaseLabel]),
	}
	if on.record != nil {
		p := c.PolicyOf(on.record.Policy, n)
		on.observed = p != nil && p.Mode == remediations.ModeObserve
		on.workers = c.WorkersOf(on.record, n)
	}
	return on
}

// InFlight reports whether a repair is in flight on the Node, by its record or its label.
func InFlight(c *remediations.Config, n *corev1.Node) bool {
	return remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight() || c.Registry.InFlight(n) != nil
}

func (on *repair) inFlight() bool { return on.record != nil || on.phase.InFlight() }

// what names the change. The message says what the person may do instead.
func (on *repair) collision(reason Reason, o override, what string) *violation {
	v := &violation{reason: reason, override: o, what: what, warns: on.observed}
	breakGlass := fmt.Sprintf(`To override this (break-glass): kubectl annotate node %s %s="<why>", and try again.`, on.node, remediations.BreakGlassKey)
	wait := fmt.Sprintf("To wait: kubectl drydock status -w, or kubectl get node %s -L %s -w.", on.node, remediations.PhaseLabel)
	r := on.record
	if r == nil {
		v.message = fmt.Sprintf("node %s is under repair: its label %s says %s, but its record is unreadable; %s would collide with the repair. %s To end the repair: kubectl annotate node %s %s=true. %s",
			on.node, remediations.PhaseLabel, on.phase, what, wait, on.node, remediations.ResetKey, breakGlass)
		return v
	}
	asked := ""
	if r.Cause.Request != "" {
		asked = ", which a person requested,"
	}
	v.message = fmt.Sprintf("node %s is under repair %s%s by policy %s: %s, attempt %d, is %s since %s and ends by %s at the latest; %s would collide with the repair. %s To cancel the repair: %s. %s",
		on.node, r.ID, asked, r.Policy, r.Step.Name, r.Step.Attempt, r.Phase, stamp(r.Since), stamp(r.Deadline), what, wait, howToCancel(on.node, r.ID), breakGlass)
	return v
}

func howToCancel(node, id string) string {
	return fmt.Sprintf("kubectl drydock cancel %s, or kubectl annotate node %s %s=%s", node, node, remediations.CancelKey, id)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
