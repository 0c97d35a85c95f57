package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// supersede removes a record that no repair can continue: it is about another machine, or its
// repair has ended.
func (s *state) supersede(now time.Time) (d lifecycle.Decision, ok bool) {
	if len(s.Journal.Superseded) == 0 {
		return d, false
	}
	key := slices.Sorted(maps.Keys(s.Journal.Superseded))[0] // the next pass removes the next record
	r := s.Journal.Superseded[key]
	if s.Ledger == nil {
		return lifecycle.Decision{Verb: lifecycle.VerbLook, Message: fmt.Sprintf("the ledger is read again before the old record of repair %s is removed", r.ID)}, true
	}
	d = lifecycle.Decision{Verb: lifecycle.VerbRest, Superseded: r, NodeWrite: lifecycle.NodeWrite{Prune: []string{key}}}
	switch {
	case s.Journal.HasEnded(r):
		d.Message = fmt.Sprintf("repair %s has ended, and its old record was put back on Node %s; the record is removed", r.ID, s.Node.Name)
		return d, true
	case s.Ledger.Outlives(r.ID):
		d.Message = fmt.Sprintf("the record of repair %s is of another machine that had the name %s; the record is removed, and the repair continues in the ledger", r.ID, s.Node.Name)
		return d, true
	}
	known := s.Journal.Knows(r.ID) // the history has the repair if its plan was exhausted
	d.Message = fmt.Sprintf("the record is of another machine that had the name %s; this machine starts without it%s", s.Node.Name, r.LeftAs())
	if undo(&d, r.Undo); d.Uncordon && s.Node.Spec.Unschedulable {
		d.Message += "; if the Node stays cordoned, the cordon came with the old record, and a person must remove it"
	}
	if known {
		return d, true
	}
	d.Ended = r.Ended(remediations.OutcomeSuperseded, d.Message, now)
	if r.Intent != nil {
		d.Ended.Machine = r.Intent.Machine()
	}
	if key != remediations.NodeRepairKey {
		of := remediations.Subject{Key: key}
		d.Ended.Target = of.Entry()
	}
	describe(d.Ended, r)
	if d.Ended.Location, d.Ended.Moves = r.Location, r.Moves; r.Pod != nil {
		d.Ended.Pod = r.Pod.String()
	}
	return d, true
}
