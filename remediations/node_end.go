package remediations

import (
	"fmt"
	"iter"
	"maps"
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

// resetLocation forgets the exhausted repair of the leader that the node was.
func (s *State) resetLocation() Decision {
	leader, allow := s.Journal.location(), s.stoppedHere()
	if s.Ledger != nil && !slices.Contains(allow, leader.Policy) {
		allow = append(allow, leader.Policy)
	}
	return Decision{
		Verb: Rest, Prune: append([]string{LocationKey}, s.Journal.exhaustedBeside()...), Allow: allow,
		Message: fmt.Sprintf("the exhausted repair %s of the leader of location %s was forgotten", leader.ID, leader.Location),
	}
}

// stoppedHere are the policies of the node's alerts, and of its repair, that are stopped. Where those are over, they are the
// policies that would take the node: a person must be able to let a policy go on after its last alert.
func (s *State) stoppedHere() []string {
	if s.Ledger == nil {
		return nil
	}
	var out []string
	stopped := func(policy string) {
		if (s.Ledger.Failing(policy) || s.Ledger.Status.Stopped[policy] != "") && !slices.Contains(out, policy) {
			out = append(out, policy)
		}
	}
	if r := s.Journal.Record; r != nil {
		stopped(r.Policy)
	}
	for _, a := range s.Journal.Alerts {
		stopped(a.Policy)
	}
	if len(out) > 0 {
		return out
	}
	for _, all := range []iter.Seq[string]{maps.Keys(s.Ledger.Status.Stopped), maps.Keys(s.Ledger.Status.Exhausted)} {
		for _, policy := range slices.Sorted(all) {
			if p := s.Config.PolicyOf(policy, s.Node); p == nil || p.takes(s.Node) {
				stopped(policy)
			}
		}
	}
	return out
}

// exhaustedBeside are the keys of the exhausted repairs of the node's targets that a node may have many of.
func (j Journal) exhaustedBeside() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(j.Records)) {
		if j.Records[key].Phase == Exhausted && key != LocationKey {
			out = append(out, key)
		}
	}
	return out
}
