package node

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// closing takes back what Drydock did to the node, and remembers what the plan goes on with if the alert comes back.
func (s *state) closing(d *lifecycle.Decision, now time.Time) {
	r, e := s.Record, d.Ended
	describe(e, r)
	if last, ok := r.Issued(); ok && (e.Outcome == remediations.OutcomeRecovered || e.Outcome == remediations.OutcomeSelfRecovered) && r.Intent.ProviderID == s.Node.Spec.ProviderID {
		e.Last = &last // a new machine does not go on with the plan of the one that it replaced
	}
	undo(d, r)
	e.Left = s.leave(d, r.Undo, now)
}

// describe takes over what the record says of how the repair came about.
func describe(e *remediations.Entry, r *remediations.Record) {
	e.Also, e.Request, e.Evidence = slices.Clone(r.Also), r.Cause.Request, r.Evidence
	if r.After != nil {
		e.After, e.Earlier = r.After.ID, slices.Clone(r.After.Steps)
	}
}

// undo takes back what the record says that Drydock did to the node.
func undo(d *lifecycle.Decision, r *remediations.Record) {
	for _, u := range r.Undo {
		d.Uncordon = d.Uncordon || u.Kind == remediations.UndoCordon
		d.Untaint = d.Untaint || u.Kind == remediations.UndoTaint
		if u.Kind == remediations.UndoAnnotation {
			d.Withdraw = append(d.Withdraw, u.Key)
		}
	}
}

// exhaust ends the plan; the record stays until a person has looked.
func (s *state) exhaust(p *remediations.Policy, now time.Time) lifecycle.Decision {
	d := s.End(remediations.OutcomeExhausted, "", now)
	r := s.Record.Exhausted(now)
	missing := "its alert came back"
	if r.Intent != nil {
		_, missing = s.proven()
	}
	d.Message = fmt.Sprintf("all steps were tried (%s) and the node is not cured: %s%s", all(r), missing, passedOver(r))
	d.Ended.Why = text.Line(d.Message, 300)
	d.Uncordon, d.Untaint, d.Withdraw, d.Ended.Left = false, false, nil, nil
	disruptive := slices.ContainsFunc(all(r), func(done remediations.Attempt) bool { return s.Config.Remediation(done.Name).Disruptive })
	if p.CordonExhausted && p.Mode == remediations.ModeEnforce && disruptive && !s.Node.Spec.Unschedulable {
		d.Cordon = true
		r.Undo = append(r.Undo, remediations.Undo{Kind: remediations.UndoCordon, At: remediations.Instant(now)})
	}
	// A cordon for a step that is over ends here, unless the policy keeps it, and so does what others were told of the repair. What a
	// machine that is gone left behind stays marked.
	over := func(u remediations.Undo) bool {
		return u.Kind == remediations.UndoAnnotation || (u.Kind == remediations.UndoCordon && !p.CordonExhausted)
	}
	undo(&d, &remediations.Record{Undo: slices.DeleteFunc(slices.Clone(r.Undo), func(u remediations.Undo) bool { return !over(u) })})
	d.Ended.Left = s.leave(&d, r.Undo, now)
	r.Undo = slices.DeleteFunc(r.Undo, over)
	d.Record = r
	return d
}

// resetLocation forgets the exhausted repair of the leader that the node was.
func (s *state) resetLocation() lifecycle.Decision {
	leader, allow := s.Journal.Location(), s.stoppedHere()
	if s.Ledger != nil && !slices.Contains(allow, leader.Policy) {
		allow = append(allow, leader.Policy)
	}
	return lifecycle.Decision{
		Verb:        lifecycle.VerbRest,
		NodeWrite:   lifecycle.NodeWrite{Prune: append([]string{remediations.LocationKey}, exhaustedBeside(s.Journal)...)},
		LedgerWrite: lifecycle.LedgerWrite{Allow: allow},
		Message:     fmt.Sprintf("the exhausted repair %s of the leader of location %s was forgotten", leader.ID, leader.Location),
	}
}

// stoppedHere are the policies of the node's alerts, and of its repair, that are stopped. Where those are over, they are the
// policies that would take the node: a person must be able to let a policy go on after its last alert.
func (s *state) stoppedHere() []string {
	if s.Ledger == nil {
		return nil
	}
	var out []string
	stopped := func(policy string) {
		if (s.Ledger.Failing(policy) || s.Ledger.Status.Stopped[policy] != "") && !slices.Contains(out, policy) {
			out = append(out, policy)
		}
	}
	if r := s.Record; r != nil {
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
			if p := s.Config.PolicyOf(policy, s.Node); p == nil || p.Takes(s.Node) {
				stopped(policy)
			}
		}
	}
	return out
}

// exhaustedBeside are the keys of the exhausted repairs of the node's targets that a node may have many of.
func exhaustedBeside(j remediations.Journal) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(j.Records)) {
		if j.Records[key].Phase == remediations.PhaseExhausted && key != remediations.LocationKey {
			out = append(out, key)
		}
	}
	return out
}
