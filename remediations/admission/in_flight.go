package admission

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// repair is the repair in flight on a node, if any.
type repair struct {
	node string
	// record is the record of the repair in flight, or nil if there is none or Drydock cannot read it.
	record *remediations.Record
	// recorded is the record of the node's repair, in flight or not. It is nil if there is none or
	// Drydock cannot read it.
	recorded *remediations.Record
	// phase is the phase in the Node's label.
	phase remediations.Phase
	// observed means that the policy of the repair is in observe mode now.
	observed bool
	// workers are the Kubernetes users that carry out the current step of the repair for Drydock.
	workers []string
	// mesh is the repair in flight of the leader of the node's mesh location, if its record is on
	// another node. Otherwise it is nil. Only a change of the leader annotation needs it.
	mesh *repair
}

// repairOf reads the repair from the Node. The record or the phase label alone is enough to show a
// repair in flight. The ValidatingAdmissionPolicy reads the label alone, and both must decide the
// same.
//
// They differ in one case: the policy of the repair was switched to observe mode while the repair
// was in flight. Until the step is proven or its deadline has passed, the label still shows a
// repair. The label does not name the policy, so the ValidatingAdmissionPolicy denies a change
// about which this package only warns (docs/reference/admission.md).
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

// collision returns the violation for a change that would collide with the repair. The parameter
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
