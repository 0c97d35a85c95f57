package location

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// State is the input of Decide. Call, NewID, WellSince and WellHeard are those of the leader's
// repair.
type State struct {
	*lifecycle.State
	remediations.Subject
	// Seen is the last observation, or nil.
	Seen *Observation
}

type target struct {
	lifecycle.Base
	seen *Observation
	// move is what the next attempt does.
	move remediations.Move
}

// Decide returns what to do about the leader of one mesh location. The same state and time give the
// same decision.
//
// It does not check the breaker: if the leader does not forward, many nodes look unhealthy, and
// only the repair of the location can change that. The leader's machine is repaired for an alert of
// its own.
func Decide(known *State, now time.Time) lifecycle.Decision {
	s := &target{seen: known.Seen}
	s.Bind(s, known.State, known.Subject)
	return lifecycle.DecideTarget(s, now)
}

func (s *target) Describe() lifecycle.Description {
	d := lifecycle.Description{
		Kind: remediations.KindLocation, What: "location " + s.Name, Asked: "the mesh", Next: "move",
		Looking: "observing which node leads the location", Checking: "observing the location", Awaits: lifecycle.AwaitsProof,
		Unknown: remediations.ReasonLeaderUnknown, Apart: lifecycle.LookAgain,
		Soon: []remediations.Reason{remediations.ReasonLeaderHeld, remediations.ReasonLeaderUnknown, remediations.ReasonNodeUnderRepair, remediations.ReasonObserving},
	}
	if r := s.Record; r != nil && r.Intent != nil {
		d.Of = fmt.Sprintf("location %s to %s", r.Location, r.Intent.Successor)
	}
	return d
}

func (s *target) SeenAt() time.Time {
	if s.seen == nil {
		return time.Time{}
	}
	return s.seen.At
}

func (s *target) Spent() bool { return s.Record != nil && len(s.Record.Moves) >= remediations.MaxMoves }

func (s *target) Begun(r *remediations.Record) bool { return len(r.Moves) > 0 }

func (s *target) Named(r *remediations.Record) { r.Location = s.Name }

// Closing keeps the moves in effect: only an exhausted plan undoes them.
func (s *target) Closing(d *lifecycle.Decision, _ time.Time) {
	d.Ended.Location, d.Ended.Moves = s.Record.Location, slices.Clone(s.Record.Moves)
}

// Tidy removes the alerts about mesh locations that have ended. Alerts about other locations wait
// while this one has a repair.
func (s *target) Tidy(d *lifecycle.Decision, now time.Time) {
	var all []*remediations.Alert
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if p := s.Config.Policy(a.Policy); p != nil && p.Kind == remediations.KindLocation {
			all = append(all, a)
		}
	}
	s.Tidied(d, s.Record, all, now)
}

// Examine allows a move only if the location does not answer and another node can lead it.
func (s *target) Examine(c *lifecycle.Candidate, _ *remediations.Record, _ bool) (*lifecycle.Decision, remediations.Reason, *lifecycle.Finding) {
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

func (s *target) Intend(c *lifecycle.Candidate, pending *remediations.Record, d *lifecycle.Decision) {
	r, m := d.Record, s.move
	if n := len(r.Moves); n > 0 && pending.Intent.Outcome == remediations.CallRefused {
		r.Moves[n-1].Refused = true
	}
	r.Moves = append(r.Moves, m)
	r.Undo = append(r.Undo, remediations.Undo{Kind: remediations.UndoLeader, Key: m.To, At: remediations.Instant(c.Now)})
	r.Intent.UID, r.Intent.Successor = string(s.Node.UID), m.To
	d.Message = fmt.Sprintf("move the mesh leadership of location %s from %s to %s (attempt %d) %s", m.Location, m.From, m.To, c.Step.Attempt, c.By())
}

// Acting continues to undo the moves, if that has begun.
func (s *target) Acting(now time.Time) lifecycle.Decision {
	if s.Record.Back == nil {
		return s.Base.Acting(now)
	}
	return s.restore(now)
}
