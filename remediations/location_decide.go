package remediations

import (
	"fmt"
	"slices"
	"time"
)

// backFor bounds how long moves are being put back, with all that holds it.
const backFor = time.Hour

// LocationState is all that DecideLocation may know. Call, NewID, WellSince and WellHeard of the State are the leader's own.
type LocationState struct {
	*State
	Subject
	// Sight is what was last seen of the location; nil: nothing yet.
	Sight *LocationSight
}

// DecideLocation says what is to be done about the leader of one location of the mesh, on the Node that led when that was
// found out. It is pure, as Decide is, and asks the same guards, but for those that speak of the machine: a leader that
// does not forward makes many nodes look ill, and its node is repaired by an alert of its own.
func DecideLocation(s *LocationState, now time.Time) Decision {
	return decideOwn(s, now)
}

// tidy speaks of the alerts about other locations, too: they wait until this one is done with.
func (s *LocationState) tidy(d *Decision, now time.Time) {
	var all []*Alert
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if p := s.Config.Policy(a.Policy); p != nil && p.Kind == KindLocation {
			all = append(all, a)
		}
	}
	s.tidied(d, s.Record, all, now)
}

func (s *LocationState) policyOf(r *Record) *Policy { return s.Config.Policy(r.Policy) }

func (s *LocationState) untouched(r *Record) bool { return r.Phase == Pending && len(r.Moves) == 0 }

// first waits where the call for the first move was withheld.
func (s *LocationState) first(now time.Time) (Decision, bool) {
	if s.Record == nil {
		return Decision{}, false
	}
	return s.Record.afterWithheld(s.policyOf(s.Record), s.apart(), now)
}

func (s *LocationState) likelyStep(*Policy, *Alert, time.Time) StepOn { return StepOn{} }

func (s *LocationState) consider(p *Policy, a *Alert, now time.Time) Decision {
	step, ok := s.firstStep(p)
	if !ok {
		return withoutStep(p)
	}
	r := s.Record
	if r == nil || r.Cause.Alert != a.Fingerprint || r.Policy != p.Name {
		r = s.newRecord(p, Cause{Alert: a.Fingerprint}, now)
		r.Location, r.Step = s.Name, step
	}
	return act(s, s.candidate(p, a, a.Fingerprint, step, now), r)
}

func (s *LocationState) candidate(p *Policy, a *Alert, fingerprint string, step StepRef, now time.Time) *candidate {
	return &candidate{State: s.State, now: now, policy: p, step: step, alert: a, kind: KindLocation, record: s.Record, location: s.Name, verdict: s.Word.About(fingerprint, s.Config, "")}
}

// examine looks at the location: a move needs one that does not answer, and somebody who can lead it instead.
func (s *LocationState) examine(c *candidate, _ *Record, _ bool) (*Decision, Reason, *Finding) {
	instead := func(d Decision) (*Decision, Reason, *Finding) { return &d, "", nil }
	if s.seen().older(c.now, lookAgain) {
		return instead(see("looking at who leads the location", c.policy))
	}
	if s.elsewhere() {
		return instead(s.leave(c.now))
	}
	against, why := s.against(c)
	if why == nil {
		c.move, against, why = s.successor(c)
		c.subject = fmt.Sprintf("%s to %s in location %s", c.move.From, c.move.To, c.location)
	}
	if why != nil && against == "" {
		return instead(s.exhaust(c, why.Message))
	}
	return nil, against, why
}

func (s *LocationState) asks(c *candidate, ask *Ask) StepOn {
	ask.Sighting = s.seen().older(c.now, LookFor)
	return StepOn{}
}

func (s *LocationState) intend(c *candidate, pending *Record, d *Decision) {
	r, m := d.Record, c.move
	if n := len(r.Moves); n > 0 && pending.Intent.Outcome == CallRefused {
		r.Moves[n-1].Refused = true
	}
	r.Moves = append(r.Moves, m)
	r.Undo = append(r.Undo, Undo{Kind: UndoLeader, Key: m.To, At: Instant(c.now)})
	r.Intent.UID, r.Intent.Successor = string(s.Node.UID), m.To
	d.Message = fmt.Sprintf("move the mesh leadership of location %s from %s to %s (attempt %d) %s", m.Location, m.From, m.To, c.step.Attempt, c.by())
}

// acting goes on with a move, or with the undoing of all.
func (s *LocationState) acting(now time.Time) Decision {
	if s.Record.Back != nil {
		return s.restore(now)
	}
	return settle(s, now)
}

func (s *LocationState) overdue(r *Record, now time.Time) bool { return r.beyond(now) }

func (s *LocationState) verdictOn(cause Cause) Verdict {
	return s.Word.About(cause.Alert, s.Config, "")
}

func (s *LocationState) apart() time.Duration { return lookAgain }

func (s *LocationState) attempt(r *Record) string {
	return fmt.Sprintf("%s of location %s to %s", r.Step, r.Location, r.Intent.Successor)
}

func (s *LocationState) awaits() string { return "waiting for proof" }

// end closes the repair. What it moved stays moved: only a plan that has run out puts it back.
func (s *LocationState) end(o Outcome, why string, now time.Time) Decision {
	r := s.Record
	d := Decision{Verb: End, Message: why, Policy: s.policyOf(r), Ended: r.ended(o, why, now)}
	d.Ended.Target, d.Ended.Location, d.Ended.Moves = s.entry(), r.Location, slices.Clone(r.Moves)
	return d
}
