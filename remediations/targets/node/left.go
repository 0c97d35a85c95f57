package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// leave is for a repair that ends while a mark of a person or of another system forbids changes of
// the Node. Drydock's changes stay there, and the history lists them. When the mark is removed,
// takeBack undoes them.
func (s *state) leave(d *lifecycle.Decision, changes []remediations.Undo, now time.Time) (left []remediations.Undo) {
	reason, _ := s.markOnNode(now)
	if reason == "" || len(changes) == 0 {
		return nil
	}
	d.Uncordon, d.Untaint, d.Withdraw = false, false, nil
	d.Message += fmt.Sprintf("; the node keeps Drydock's %s, because a hold forbids changes of the node: %s", kindsOf(changes), reason)
	return changes
}

func (s *state) takeBack(now time.Time) (lifecycle.Decision, bool) {
	r := s.Record
	if s.Journal.CannotRead(remediations.NodeRepairKey) || (r != nil && r.Phase != remediations.PhaseExhausted && r.Intent != nil) {
		return lifecycle.Decision{}, false
	}
	i := slices.IndexFunc(s.Journal.History, func(e remediations.Entry) bool {
		return slices.ContainsFunc(e.Left, func(u remediations.Undo) bool { return u.Due(s.Node) })
	})
	if i < 0 {
		return lifecycle.Decision{}, false
	}
	if reason, _ := s.markOnNode(now); reason != "" {
		return lifecycle.Decision{}, false
	}
	e := s.Journal.History[i]
	due, off := s.due(e.Left)
	d := lifecycle.Decision{Verb: lifecycle.VerbRest, NodeWrite: lifecycle.NodeWrite{LeftOf: e.ID, Left: off}, Message: fmt.Sprintf("repair %s ended at %s and left Drydock's %[3]s on the node; Drydock now removes this %[3]s", e.ID, e.Ended.Format(time.RFC3339), kindsOf(due))}
	undo(&d, due)
	return d, true
}

func kindsOf(undo []remediations.Undo) string {
	var out []string
	for _, u := range undo {
		if !slices.Contains(out, u.Kind) {
			out = append(out, u.Kind)
		}
	}
	return strings.Join(out, ", ")
}

// markOnNode returns the guard that forbids every change of the node because of a mark of a person
// or another system, or nothing.
func (s *state) markOnNode(now time.Time) (remediations.Reason, string) {
	c := s.Candidate(&remediations.Policy{}, nil, remediations.Cause{}, remediations.StepRef{}, now)
	if reason, f := c.HeldBy([]remediations.Reason{remediations.ReasonExcluded, remediations.ReasonPaused, remediations.ReasonNodeLeaving}); f != nil {
		return reason, f.Message
	}
	// An expired annotation still holds until the leases have confirmed Drydock's clock.
	for _, key := range []string{remediations.BreakGlassKey, remediations.PauseKey} {
		if _, ok := s.Node.Annotations[key]; ok {
			return remediations.ReasonPaused, key + " is still set"
		}
	}
	return "", ""
}
