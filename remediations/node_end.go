package remediations

import (
	"fmt"
	"slices"
	"time"
)

// End closes the repair.
func (s *State) End(o Outcome, why string, now time.Time) Decision {
	r := s.Journal.Record
	d := Decision{Verb: End, Message: why, Policy: s.policy(), Ended: r.ended(o, why, now)}
	d.Ended.Also, d.Ended.Request, d.Ended.Evidence = slices.Clone(r.Also), r.Cause.Request, r.Evidence
	if r.After != nil {
		d.Ended.After, d.Ended.Earlier = r.After.ID, slices.Clone(r.After.Steps)
	}
	if last, ok := r.issued(); ok && (o == Recovered || o == SelfRecovered) && r.Intent.ProviderID == s.Node.Spec.ProviderID {
		d.Ended.Last = &last // a new machine does not go on with the plan of the one that it replaced
	}
	d.undo(r)
	d.Ended.Left = s.leave(&d, r.Undo, now)
	return d
}

// undo takes back what the record says that Drydock did to the node.
func (d *Decision) undo(r *Record) {
	for _, u := range r.Undo {
		d.Uncordon = d.Uncordon || u.Kind == UndoCordon
		d.Untaint = d.Untaint || u.Kind == UndoTaint
	}
}

// exhaust ends the plan; the record stays until a person has looked.
func (s *State) exhaust(p *Policy, now time.Time) Decision {
	d := s.End(OutcomeExhausted, "", now)
	r := s.Journal.Record.Exhausted(now)
	missing := "its alert came back"
	if r.Intent != nil {
		_, missing = s.proven()
	}
	d.Message = fmt.Sprintf("all steps were tried (%s) and the node is not cured: %s%s", joined(r.all()), missing, r.passedOver())
	d.Ended.Why = clip(d.Message, 300)
	d.Uncordon, d.Untaint, d.Ended.Left = false, false, nil
	disruptive := slices.ContainsFunc(r.all(), func(done string) bool { return Registry[stepName(done)].Disruptive })
	if p.CordonExhausted && p.Mode == ModeEnforce && disruptive && !s.Node.Spec.Unschedulable {
		d.Cordon = true
		r.Undo = append(r.Undo, Undo{Kind: UndoCordon, At: Instant(now)})
	}
	if !p.CordonExhausted { // the cordon was for a step that is over; what a machine that is gone left behind stays marked
		for _, u := range r.Undo {
			d.Uncordon = d.Uncordon || u.Kind == UndoCordon
		}
		d.Ended.Left = s.leave(&d, r.Undo, now)
		r.Undo = slices.DeleteFunc(r.Undo, func(u Undo) bool { return u.Kind == UndoCordon })
	}
	d.Record = r
	return d
}
