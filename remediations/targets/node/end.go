package node

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Closing undoes Drydock's changes to the node. It stores the last step, because the next repair
// continues the plan after it if the alert returns.
func (s *state) Closing(d *lifecycle.Decision, now time.Time) {
	r, e := s.Record, d.Ended
	describe(e, r)
	if last, ok := r.Issued(); ok && (e.Outcome == remediations.OutcomeRecovered || e.Outcome == remediations.OutcomeSelfRecovered) && r.Intent.ProviderID == s.Node.Spec.ProviderID {
		e.Last = &last // a new machine does not continue the plan of its predecessor
	}
	e.Left = s.undone(d, r.Undo, now)
}

// describe copies what caused the repair, and the steps of an earlier repair that it continues.
func describe(e *remediations.Entry, r *remediations.Record) {
	e.Also, e.Request, e.Evidence = slices.Clone(r.Also), r.Cause.Request, r.Evidence
	if r.After != nil {
		e.After, e.Earlier = r.After.ID, slices.Clone(r.After.Steps)
	}
}

// undone returns the changes that must stay on the Node for now.
func (s *state) undone(d *lifecycle.Decision, changes []remediations.Undo, now time.Time) (left []remediations.Undo) {
	due, off := s.due(changes)
	undo(d, due)
	left = append(s.leave(d, due, now), off...)
	if len(off) > 0 {
		d.Message += fmt.Sprintf("; the machine was switched off, so the node keeps the taint %s until it is Ready after another boot", remediations.OutOfServiceTaint)
	}
	return left
}

// due returns the changes that may be undone now, and those that stay while the machine is off.
func (s *state) due(changes []remediations.Undo) (due, off []remediations.Undo) {
	for _, u := range changes {
		if u.Due(s.Node) {
			due = append(due, u)
		} else {
			off = append(off, u)
		}
	}
	return due, off
}

func undo(d *lifecycle.Decision, changes []remediations.Undo) {
	for _, u := range changes {
		d.Uncordon = d.Uncordon || u.Kind == remediations.UndoCordon
		d.Untaint = d.Untaint || u.Kind == remediations.UndoTaint
		if u.Kind == remediations.UndoAnnotation {
			d.Withdraw = append(d.Withdraw, u.Key)
		}
	}
}

// exhaust ends the plan. The record stays until a person resets the node.
func (s *state) exhaust(p *remediations.Policy, now time.Time) lifecycle.Decision {
	d := s.End(remediations.OutcomeExhausted, "", now)
	r := s.Record.Exhausted(now)
	tried, missing := "all steps were tried", "its alert came back"
	if r.Intent != nil {
		if _, missing = s.proven(); missing == "" {
			still := "the fault is still there"
			if !s.Sound() {
				still = "the node is not Ready"
			}
			missing = fmt.Sprintf("%s was carried out, and %s", remediations.LastDone(r).Name, still)
		}
		if fewer := s.fewerGPUs(); fewer != "" {
			tried, missing = "these steps were done", fewer // the plan may have more steps, but no alert needs them
		}
	}
	refilled := s.refilled()
	if refilled {
		tried = "these steps were done"
		missing += fmt.Sprintf("; the node was uncordoned while Drydock verified %s, so pods may be back, and no other step is taken", remediations.LastDone(r))
	}
	d.Message = fmt.Sprintf("%s (%s) and the node is not cured: %s%s%s", tried, r.All(), missing, switchedOff(r), passedOver(r))
	d.Ended.Why = text.Line(d.Message, 300)
	d.Uncordon, d.Untaint, d.Withdraw, d.Ended.Left = false, false, nil, nil
	disruptive := slices.ContainsFunc(r.All(), func(done remediations.Attempt) bool { return s.Config.Remediation(done.Name).Disruptive })
	if p.CordonExhausted && p.Mode == remediations.ModeEnforce && disruptive && !s.Node.Spec.Unschedulable && !refilled {
		d.Cordon = true
		r.Undo = append(r.Undo, remediations.Undo{Kind: remediations.UndoCordon, At: remediations.Instant(now)})
	}
	// The announcements to other systems are removed, and the cordon unless the policy has
	// cordonExhausted. The out-of-service taint of a machine that is gone stays.
	over := func(u remediations.Undo) bool {
		return u.Kind == remediations.UndoAnnotation || (u.Kind == remediations.UndoCordon && !p.CordonExhausted)
	}
	d.Ended.Left = s.undone(&d, slices.DeleteFunc(slices.Clone(r.Undo), func(u remediations.Undo) bool { return !over(u) }), now)
	r.Undo = slices.DeleteFunc(r.Undo, over)
	d.Record = r
	return d
}
