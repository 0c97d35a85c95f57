package location

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// State is everything that Decide may know. Call, NewID, WellSince and WellHeard of the State
// belong to the leader.
type State struct {
	lifecycle.Target
	// Seen is the last observation of the location; nil: none yet.
	Seen *Observation

	// move is the move that would be made.
	move remediations.Move
}

// Decide decides what to do about the leader of one location of the mesh, on the Node that led at
// the time of the observation. It is pure, like the core's, and asks the same guards, except those
// about the machine. A leader that does not forward makes many nodes look ill, and its node is
// repaired for an alert of its own.
func Decide(state *State, now time.Time) lifecycle.Decision {
	own := *state
	s := &own
	s.Kind, s.What, s.Asked, s.Next = remediations.KindLocation, "location "+s.Name, "the mesh", "move"
	s.Looking, s.Checking = "looking at who leads the location", "looking at the location"
	s.Unknown = remediations.ReasonLeaderUnknown
	s.Soon = []remediations.Reason{remediations.ReasonLeaderHeld, remediations.ReasonLeaderUnknown, remediations.ReasonNodeUnderRepair, remediations.ReasonObserving}
	if s.Seen != nil {
		s.SeenAt = s.Seen.At
	}
	if r := s.Record; r != nil {
		s.Spent = len(r.Moves) >= remediations.MaxMoves
		if r.Intent != nil {
			s.Of = fmt.Sprintf("location %s to %s", r.Location, r.Intent.Successor)
		}
	}
	s.Begun = func(r *remediations.Record) bool { return len(r.Moves) > 0 }
	s.Named = func(r *remediations.Record) { r.Location = s.Name }
	// The moves stay: only an exhausted plan undoes them.
	s.Closing = func(d *lifecycle.Decision, _ time.Time) {
		d.Ended.Location, d.Ended.Moves = s.Record.Location, slices.Clone(s.Record.Moves)
	}
	s.Elsewhere, s.Examine, s.Guard, s.Intend, s.Until, s.Tidy = s.elsewhere, s.examine, s.guard, s.intend, s.until, s.tidy
	s.Acting, s.Rest, s.Instead, s.Expired = s.acting, s.rest, s.instead, s.expired
	s.Well, s.Cure, s.Missing = s.well, s.cure, s.missing
	return lifecycle.DecideTarget(&s.Target, now)
}

// tidy also covers the alerts about other locations, which wait until this one has no repair.
func (s *State) tidy(d *lifecycle.Decision, now time.Time) {
	var all []*remediations.Alert
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if p := s.Config.Policy(a.Policy); p != nil && p.Kind == remediations.KindLocation {
			all = append(all, a)
		}
	}
	s.Tidied(d, s.Record, all, now)
}

// examine checks the observation: a move needs a location that does not answer, and a node that can
// lead it instead.
func (s *State) examine(c *lifecycle.Candidate, _ *remediations.Record, _ bool) (*lifecycle.Decision, remediations.Reason, *lifecycle.Finding) {
	against, why := s.against(c)
	if why == nil {
		s.move, against, why = s.successor(c)
		c.Subject = fmt.Sprintf("%s to %s in location %s", s.move.From, s.move.To, s.Name)
	}
	if why != nil && against == "" {
		d := s.exhaust(c, why.Message)
		return &d, "", nil
	}
	return nil, against, why
}

func (s *State) intend(c *lifecycle.Candidate, pending *remediations.Record, d *lifecycle.Decision) {
	r, m := d.Record, s.move
	if n := len(r.Moves); n > 0 && pending.Intent.Outcome == remediations.CallRefused {
		r.Moves[n-1].Refused = true
	}
	r.Moves = append(r.Moves, m)
	r.Undo = append(r.Undo, remediations.Undo{Kind: remediations.UndoLeader, Key: m.To, At: remediations.Instant(c.Now)})
	r.Intent.UID, r.Intent.Successor = string(s.Node.UID), m.To
	d.Message = fmt.Sprintf("move the mesh leadership of location %s from %s to %s (attempt %d) %s", m.Location, m.From, m.To, c.Step.Attempt, c.By())
}

// acting continues the undoing of all moves.
func (s *State) acting(now time.Time) (lifecycle.Decision, bool) {
	if s.Record.Back == nil {
		return lifecycle.Decision{}, false
	}
	return s.restore(now), true
}
